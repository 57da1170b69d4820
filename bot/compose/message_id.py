"""Message-IDs of ours: fixed when a mail is composed, readable, and unlike any other."""

from __future__ import annotations

import hashlib
from datetime import datetime

from bot.mail.identity import BotIdentity


def message_id(at: datetime, tag: str, identity: BotIdentity, purpose: str = "") -> str:
    """202603110412.7d3e91c0-perfbot@bot.example.org: when, about which report, by whom.

    `purpose`: what the mail tells, where it is not the report itself; each has an id of its own, be they composed in
    one minute.
    """
    local, _, domain = identity.address.partition("@")
    mark = f"a{hashlib.sha256(purpose.encode('utf-8', 'replace')).hexdigest()[:12]}." if purpose else ""
    return f"{at:%Y%m%d%H%M}.{mark}{tag[:8]}-{local}@{domain}"
