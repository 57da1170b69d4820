"""Message-IDs of ours: fixed when a mail is composed, readable, and unlike any other."""

from __future__ import annotations

from datetime import datetime

from bot.identity import Identity


def message_id(at: datetime, tag: str, identity: Identity) -> str:
    """202603110412.7d3e91c0-perfbot@bot.example.org: when, about which report, by whom."""
    local, _, domain = identity.address.partition("@")
    return f"{at:%Y%m%d%H%M}.{tag[:8]}-{local}@{domain}"
