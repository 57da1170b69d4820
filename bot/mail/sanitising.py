"""Foreign text, addresses and ids made safe: what may stand in a line, in a header, in an envelope. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote

# C0 and C1 controls, line and paragraph separators, and marks that turn the direction of text or take no room.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# RFC 5321 section 4.1.2, in ASCII and without quoted local parts, which no list carries.
_EMAIL = re.compile(rf"(?=.{{3,254}}\Z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*\Z")
_MESSAGE_ID = re.compile(r"[!-;=?-~]{1,400}@[!-;=?A-~]{1,400}\Z")


def one_line(text: str, limit: int = 300) -> str:
    """Foreign text made safe for a line: one line, no controls, bounded."""
    return " ".join(_UNSAFE.sub(" ", text).encode("utf-8", "replace").decode("utf-8").split())[:limit]


def for_header(text: str, limit: int = 300) -> str:
    """The same for a header, where what looks like an encoded word (RFC 2047) would be read as another text."""
    return one_line(text, limit).replace("=?", "= ?")


def is_address(email: str) -> bool:
    """Whether an address can stand in our headers: ASCII, one local part, one domain."""
    return bool(_EMAIL.match(email))


def is_message_id(text: str) -> bool:
    """Whether a foreign Message-ID, without its brackets, can stand in our headers as it is."""
    return bool(_MESSAGE_ID.match(text))


def lore_link(message_id: str) -> str:
    """The link to a mail in the archives."""
    return f"https://lore.kernel.org/r/{quote(message_id, safe='@+-._=')}"
