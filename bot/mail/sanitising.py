"""Make foreign text, addresses and ids safe for a line, a header or an envelope. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote

# C0 and C1 controls, line and paragraph separators, text direction marks and zero-width characters.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# RFC 5321 section 4.1.2, ASCII only, without quoted local parts, which no list has.
_EMAIL = re.compile(rf"(?=.{{3,254}}\Z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*\Z")
_MESSAGE_ID = re.compile(r"[!-;=?-~]{1,400}@[!-;=?A-~]{1,400}\Z")


def one_line(text: str, limit: int = 300) -> str:
    """Return foreign text as one line without control characters, at most `limit` characters."""
    return " ".join(_UNSAFE.sub(" ", text).encode("utf-8", "replace").decode("utf-8").split())[:limit]


def for_header(text: str, limit: int = 300) -> str:
    """Return text as `one_line` does, with anything that would be decoded as an encoded word (RFC 2047) broken up."""
    return one_line(text, limit).replace("=?", "= ?")


def is_address(email: str) -> bool:
    """Return whether an address is valid in our headers: ASCII, one local part, one domain."""
    return bool(_EMAIL.match(email))


def is_message_id(text: str) -> bool:
    """Return whether a foreign Message-ID, without brackets, is safe in our headers unchanged."""
    return bool(_MESSAGE_ID.match(text))


def lore_link(message_id: str) -> str:
    """Return the link to a mail on lore."""
    return f"https://lore.kernel.org/r/{quote(message_id, safe='@+-._=', errors='replace')}"
