"""Decode header values: charsets, encoded words, Message-IDs and dates.

Bytes are decoded as declared, else as UTF-8, else as windows-1252, else as latin-1, which accepts every byte;
`decode_bytes` says whether it had to guess. Bodies are decoded by it, too.

Values are unfolded. Encoded words (RFC 2047) are decoded one by one, and a broken one affects no other. Message-IDs
are without angle brackets, and dates in UTC.
"""

import base64
import binascii
import codecs
import email.utils
import quopri
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import groupby
from urllib.parse import unquote

from bot.mail.limits import MAX_ID, bounded

# --- Charsets ---

# Text declared as the first is mostly encoded in the second, its superset.
_SUPERSET = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1"), "windows-1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("ks_c_5601-1987", "euc-kr"), "cp949"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis"), "cp932"),
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
    if text := _utf8(raw, charset):
        return text, False
    for name in (_SUPERSET.get(charset, charset) or "us-ascii", charset, "utf-8", "windows-1252"):
        try:
            codec = codecs.lookup(name).name  # of its many spellings
        except (LookupError, ValueError):
            codec = name
        if not name or codec in _NEVER:
            continue
        try:
            text = raw.decode(name)
        except (LookupError, ValueError):
            continue
        as_declared = not declared or name in (charset, _SUPERSET.get(charset))
        return _SURROGATE.sub("\ufffd", text) if isinstance(text, str) else "", as_declared
    return raw.decode("latin-1"), False


def _utf8(raw: bytes, charset: str) -> str:
    """Return the text of UTF-8 that is declared as a single-byte charset or has a few damaged bytes, else ""."""
    if raw.isascii():
        return ""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        damaged = text.count("\ufffd")
        good = sum(1 for char in text if char > "\x7f") - damaged
        return text if charset in ("utf-8", "utf8", "us-ascii", "") and good > damaged else ""
    return text if _SINGLE_BYTE.match(charset) else ""  # valid UTF-8 is hardly an accident


def _utf16(raw: bytes, declared: str) -> str:
    """Return the UTF-16 variant: in plain text every other byte is NUL. Without any NUL it is UTF-8."""
    sample = raw[:400]
    if b"\0" not in sample:
        return "utf-8"
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if even == odd:
        return declared
    return "utf-16-be" if even > odd else "utf-16-le"


# --- Header values ---

MAX_IDS = 1000
_WORD = re.compile(r"=\?([^?\s]{1,60})\?(?:([bB])\?([A-Za-z0-9+/=\s]{0,8000})|([qQ])\?([^\r\n]{0,2000}?))\?=")
_ID = re.compile(r"<([^<>]{1,4000})>")
_LINK = re.compile(r"(https?://[^/]+/|mid:|mailto:|news:)(?=.*(?:@|%40|\(\)))", re.I)
_BARE_ID = re.compile(
    r"(?<![^\s<>,;\"])[^\s<>,;\"]{1,400}(?:(?:@|%40)[^\s<>,;\"]{1,400}"
    r"| \(\) [^\s<>,;\"]{1,100}(?: ! [^\s<>,;\"]{1,100}){0,9})"
)
# Line ends and bidirectional control characters must not appear in text that is shown on one line.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
# A date before the first kernel, or after the mail was received, comes from a wrong clock.
_EARLIEST, _LATEST = datetime(1991, 8, 25, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_SKEW = timedelta(hours=1)


def decode(value: str) -> str:
    """Return a header's text on one line. RFC 2047 words are decoded one by one; a broken one affects no other."""
    value = to_text(value)
    if "=?" in value:
        value = _decode_words(value)
    return " ".join(_CONTROL.sub(" ", value).split())


def _decode_words(value: str) -> str:
    """RFC 2047 section 6.2: white space between two encoded words is dropped; a character may be split across them."""
    pieces: list[tuple[str, bytes | str]] = []  # (charset, bytes) of an encoded word, ("", text) of plain text
    end = 0
    for word in _WORD.finditer(value):
        between = value[end : word.start()]
        if between.strip() or not pieces or not pieces[-1][0]:
            pieces.append(("", between))
        charset, end = word[1].partition("*")[0].lower(), word.end()
        if word[4]:
            raw = quopri.decodestring((word[5] or "").encode("ascii", "replace"), header=True)
            pieces.append((charset, raw))
            continue
        payload = "".join((word[3] or "").split())
        try:
            pieces.append((charset, base64.b64decode(payload + "=" * (-len(payload) % 4), validate=True)))
        except (binascii.Error, ValueError):
            pieces.append(("", word[0]))
    pieces.append(("", value[end:]))
    text: list[str] = []
    for charset, run in groupby(pieces, key=lambda piece: piece[0]):
        if charset:
            text.append(decode_bytes(b"".join(raw for _, raw in run if isinstance(raw, bytes)), charset)[0])
        else:
            text.extend(plain for _, plain in run if isinstance(plain, str))
    return "".join(text)


def to_text(value: str) -> str:
    """Decode raw 8-bit bytes in a header (which the parser keeps as surrogates) as UTF-8, else as latin-1."""
    try:
        value.encode("utf-8")
        return value
    except UnicodeEncodeError:
        raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def message_ids(value: str) -> tuple[str, ...]:
    """Return the Message-IDs of a header in order, without angle brackets, each once.

    They may be encoded (RFC 2047), as some mailers do to long headers, a link to an archive, or in the form in which
    an archive shows them: "a () b ! example", "a at b.example", "&lt;a@b.example&gt;". Of more than MAX_IDS the first
    and last half are kept: the root of the thread, and the nearest mails.
    """
    value = to_text(value)
    if "=?" in value:
        value = decode(value)
    if "&lt;" in value.lower():
        value = unescape(value)
    pairs = [(_plain_id(match[1]), value[max(0, match.start() - 2) : match.start()]) for match in _ID.finditer(value)]
    # "Message from Lee <lee@dev.example> of Monday <id>": what follows a name is an address.
    ids = [message_id for message_id, before in pairs if message_id and not re.search(r"\w\s?\Z", before)]
    ids = (
        ids
        or [message_id for message_id, _ in pairs]
        or [_plain_id(bare) for bare in _BARE_ID.findall(value.replace("\0", ""))]
    )
    ids = list(dict.fromkeys(map(bounded_id, ids)))
    return tuple(ids if len(ids) <= MAX_IDS else ids[: MAX_IDS // 2] + ids[-MAX_IDS // 2 :])


_AT = re.compile(r"\s?(?: at |\(a\)|\(at\))\s?")  # as pipermail writes it


def _plain_id(text: str) -> str:
    if link := _LINK.match(text):
        path = text[link.end() :]
        by_id = re.search(r"[?&]i=([^&#]+)", path)  # marc.info's
        parts = [by_id[1]] if by_id else path.partition("#")[0].split("/")[::-1]
        if link[1].endswith(":"):  # mid: names a part after the mail (RFC 2392)
            parts = parts[-1:] if link[1].lower() == "mid:" else [path]
        text = next((name for part in parts if "@" in (name := unquote(part)) or " () " in name), text)
    if " () " in text:
        text = text.replace(" () ", "@").replace(" ! ", ".")
    elif "@" not in text:
        text = _AT.sub("@", text.replace("%40", "@"))
    text = text.removeprefix("id:")  # notmuch's
    text = "".join(text.split())  # folded in its middle
    return text.replace("\0", "")  # PostgreSQL stores none


def bounded_id(message_id: str) -> str:
    """Return a Message-ID as it is stored (limits.py)."""
    if len(message_id) <= MAX_ID // 4:  # a character has at most four bytes
        return message_id
    return bounded(message_id.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")


def date(value: str, received: Sequence[str]) -> datetime | None:
    """Return when a mail was sent, in UTC, or None.

    `received` are the Received headers, topmost first: their time is used if Date is more than an hour later,
    or can't be parsed.
    """
    sent = _moment(value)
    # At the end of the header; comments may contain semicolons.
    pieces = (piece for header in received[:50] for piece in reversed(header.split(";")[1:][-5:]))
    arrived = next((moment for piece in pieces if (moment := _moment(piece))), None)
    if sent and arrived and sent > arrived + _SKEW:
        return arrived
    return sent or arrived


# Zone names of obsolete dates that RFC 5322 section 4.3 does not list.
_ZONES = {"CET": "+0100", "CEST": "+0200", "BST": "+0100", "JST": "+0900", "EET": "+0200", "EEST": "+0300"}
_ZONE = re.compile(rf"(?<=\d )(?:{'|'.join(_ZONES)})\b")


def _moment(value: str) -> datetime | None:
    value = " ".join(re.sub(r"\([^()]{0,60}\)", " ", value[:200]).strip("\"' ").split())
    value = _ZONE.sub(lambda zone: _ZONES[zone[0]], value)
    value = re.sub(r"(?:GMT|UTC)?([+-]\d\d):?(\d\d)\b", r"\1\2", value)  # +01:00, GMT+0100
    value = re.sub(r"(\d\d:\d\d):60\b", r"\1:59", value)  # a leap second
    value = re.sub(r"[+-](?:2[4-9]|[3-9]\d)\d\d\b", "-0000", value)  # an impossible offset
    for read in (email.utils.parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(value)
            if moment.tzinfo is None:  # "-0000": UTC, local zone unknown
                moment = moment.replace(tzinfo=UTC)
            moment = moment.astimezone(UTC)
        except (TypeError, ValueError, IndexError, OverflowError, AttributeError):
            continue
        return moment if _EARLIEST <= moment < _LATEST else None
    return None
