"""Our Message-IDs: fixed when a mail is composed, readable and unique."""

from __future__ import annotations

import hashlib
from datetime import datetime

from bot.mail.identity import BotIdentity


def message_id(at: datetime, tag: str, identity: BotIdentity, purpose: str = "") -> str:
    """Return an id like 202603110412.7d3e91c0-perfbot@bot.example.org: when, about which report, from whom.

    `purpose`: what the mail is about, if it is not the report itself; mails composed in the same minute still get
    different ids.
    """
    local, _, domain = identity.address.partition("@")
    mark = f"a{hashlib.sha256(purpose.encode('utf-8', 'replace')).hexdigest()[:12]}." if purpose else ""
    return f"{at:%Y%m%d%H%M}.{mark}{tag[:8]}-{local}@{domain}"
