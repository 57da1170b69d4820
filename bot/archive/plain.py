"""The body of a mail as bytes in the clear: transfer encodings undone, without taking the mail apart. Pure.

For looking whether something stands in it; what is junk between the parts stays junk. RFC 2045, RFC 3676.
"""

from __future__ import annotations

import binascii
import re

_BASE64 = re.compile(rb"(?:^[A-Za-z0-9+/]+={0,2}[ \t]*(?:\r?\n|\Z))+", re.M)


def in_the_clear(body: bytes, *, quoted: bool, base64: bool, delsp: bool) -> bytes:
    """The body, and below it what may be encoded in it. `delsp`: flowed lines are joined without a space."""
    clear = body
    if quoted:
        clear += binascii.a2b_qp(body)
    if base64:
        clear += b"".join(map(_decoded, _BASE64.findall(body)))
    if delsp:
        clear = clear.replace(b" \r\n", b"").replace(b" \n", b"")
    return clear.replace(b"\0", b"") if b"\0" in clear else clear


def _decoded(block: bytes) -> bytes:
    letters = b"".join(block.split()).replace(b"=", b"")
    letters = letters[:-1] if len(letters) % 4 == 1 else letters
    return b"\n" + binascii.a2b_base64(letters + b"=" * (-len(letters) % 4))
