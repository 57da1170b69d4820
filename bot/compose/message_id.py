"""Message-IDs of ours: fixed when a mail is composed, readable, and unlike any other."""

from __future__ import annotations

from datetime import datetime

from bot.identity import Identity


def message_id(at: datetime, tag: str, identity: Identity, purpose: str = "report") -> str:
    """202603110412.7d3e91c0-perfbot@bot.example.org; what is no first report has its purpose in it."""
    local, _, domain = identity.address.partition("@")
    extra = "" if purpose == "report" else f"-{purpose}"
    return f"{at:%Y%m%d%H%M}.{tag[:8]}{extra}-{local}@{domain}"
