"""Header values as people see them: folding undone, encoded words read, ids and dates in one form."""

from __future__ import annotations

import email.header
import email.utils
import re
from datetime import UTC, datetime, timedelta

_ID = re.compile(r"<\s*([^<>\s]{1,900})\s*>")
_BARE_ID = re.compile(r"[^\s<>,;\"]{1,400}@[^\s<>,;\"]{1,400}")
_FOLD = re.compile(r"\s*[\r\n]+\s*|\t+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b\ufeff\u202a-\u202e\u2066-\u2069]")
# A date before the first kernel, or after the mail was received, is a broken clock.
_EARLIEST = datetime(1991, 8, 25, tzinfo=UTC)
_SKEW = timedelta(hours=1)


def decode(value: str) -> str:
    """A header's text: RFC 2047 words decoded where their charset is known, bytes kept readable where not."""
    value = _FOLD.sub(" ", to_text(value)).strip()
    if "=?" in value:
        try:
            value = "".join(_chunk(chunk, charset) for chunk, charset in email.header.decode_header(value))
        except (ValueError, LookupError, AssertionError):  # broken base64: the raw form stands
            pass
    return _CONTROL.sub("", " ".join(value.split(" "))).strip()


def _chunk(chunk: bytes | str, charset: str | None) -> str:
    if isinstance(chunk, str):
        return chunk
    for name in (charset or "ascii", "utf-8"):
        try:
            return chunk.decode(name)
        except (LookupError, ValueError):
            continue
    return chunk.decode("latin-1")


def to_text(value: str) -> str:
    """Raw 8-bit bytes in a header (kept by the parser as surrogates) as UTF-8, else as latin-1."""
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
    """The Message-IDs of a header in order, without angle brackets, each once."""
    value = _FOLD.sub(" ", to_text(value))
    found = _ID.findall(value) or _BARE_ID.findall(value)
    return tuple(dict.fromkeys(found[:1000]))


def date(value: str, received: str) -> datetime | None:
    """When a mail was sent, in UTC, or None.

    `received` is the topmost Received header: a Date later than that by more than an hour, or
    none that can be read, gives way to it.
    """
    sent, arrived = _moment(value), _moment(received.rpartition(";")[2])
    if sent and arrived and sent > arrived + _SKEW:
        return arrived
    return sent or arrived


def _moment(value: str) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(_FOLD.sub(" ", value).strip())
        if moment.tzinfo is None:  # "-0000": UTC, with nothing said of the place
            moment = moment.replace(tzinfo=UTC)
        moment = moment.astimezone(UTC)
    except (TypeError, ValueError, IndexError, OverflowError, AttributeError):
        return None
    return moment if moment >= _EARLIEST else None
