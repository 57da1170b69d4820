"""Decode the transfer encodings in the body of a mail, without splitting it into parts. Pure.

For searching only: what separates the parts stays in it. RFC 2045, RFC 3676.
"""

from __future__ import annotations

import binascii
import re

_UTF16 = ("utf-16-le", "utf-16-be")
_BASE64 = re.compile(rb"(?:^[ \t]*[A-Za-z0-9+/]+={0,2}[ \t]*(?:\n|\Z))+", re.M)


def decode_body(body: bytes, *, quoted: bool, base64: bool, delsp: bool) -> bytes:
    """Return the body, followed by its decoded forms. `delsp`: flowed lines are joined without a space."""
    clear = body
    if quoted:
        clear += b"\n" + binascii.a2b_qp(body)
    if base64:
        clear += b"".join(map(_decoded, _BASE64.findall(body)))
    if b"\0" in clear:  # UTF-16, or UTF-32
        clear = clear.replace(b"\0", b"")
    if delsp:
        clear += b"\n" + clear.replace(b" \n", b"")
    return clear


def _decoded(block: bytes) -> bytes:
    letters = b"".join(block.split()).replace(b"=", b"")
    letters = letters[:-1] if len(letters) % 4 == 1 else letters
    raw = binascii.a2b_base64(letters + b"=" * (-len(letters) % 4))
    if b"\0" in raw:  # UTF-16: one of the two byte orders is right
        raw += b"".join(b"\n" + raw.decode(name, "ignore").encode("utf-8", "ignore") for name in _UTF16)
    return b"\n" + raw
