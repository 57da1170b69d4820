"""Decode bytes: as declared, else UTF-8, else windows-1252, else latin-1, which accepts every byte."""

from __future__ import annotations

import codecs
import re

# Text declared as the first is mostly encoded in the second, its superset.
_SUPERSET = {
    "iso-8859-1": "windows-1252",
    "latin1": "windows-1252",
    "latin-1": "windows-1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
}
# Python codecs that are not mail charsets: they could turn escapes into commands.
_NEVER = frozenset({"unicode-escape", "raw-unicode-escape", "punycode", "idna", "undefined"})
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SINGLE_BYTE = re.compile(r"(?:iso-?8859-\d+|latin-?\d|windows-125\d|cp125\d|koi8-\w|us-ascii)\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")


def decode_bytes(raw: bytes, declared: str) -> tuple[str, bool]:
    """Return the text, and whether it could be decoded without a guess."""
    charset = declared.strip().strip("\"'").lower()
    for bom, name in _BOMS:
        if raw.startswith(bom):
            raw, charset = raw[len(bom) :], name
    if charset.startswith("utf-16") and not raw.startswith(codecs.BOM_UTF16):
        charset = _utf16(raw, charset)
    if _SINGLE_BYTE.match(charset) and _is_utf8(raw):
        return raw.decode("utf-8"), False  # valid UTF-8 is hardly an accident
    if charset in ("utf-8", "utf8", "us-ascii", "") and (repaired := _repaired_utf8(raw)):
        return repaired, False
    for name in (_SUPERSET.get(charset, charset) or "us-ascii", charset, "utf-8", "windows-1252"):
        if not name or _codec(name) in _NEVER:
            continue
        try:
            text = raw.decode(name)
        except (LookupError, ValueError):
            continue
        as_declared = not declared or name in (charset, _SUPERSET.get(charset))
        return _SURROGATE.sub("\ufffd", text) if isinstance(text, str) else "", as_declared
    return raw.decode("latin-1"), False


def _is_utf8(raw: bytes) -> bool:
    """Whether the bytes are valid UTF-8 with non-ASCII characters."""
    if raw.isascii():
        return False
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _repaired_utf8(raw: bytes) -> str:
    """Return the text of UTF-8 with a few damaged bytes; "" if it is valid, or not UTF-8 at all."""
    if raw.isascii() or _is_utf8(raw):
        return ""
    text = raw.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    good = sum(1 for char in text if char > "\x7f") - damaged
    return text if good > damaged else ""


def _codec(name: str) -> str:
    """Return the canonical name of a codec, which has many spellings."""
    try:
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return name


def _utf16(raw: bytes, declared: str) -> str:
    """Return the UTF-16 variant: in plain text every other byte is NUL. Without any NUL it is UTF-8."""
    sample = raw[:400]
    if b"\0" not in sample:
        return "utf-8"
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if even == odd:
        return declared
    return "utf-16-be" if even > odd else "utf-16-le"
