"""One mail as an archive holds it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.mail.message import MAX_BYTES

# Of a larger mail only this much is read: one byte more than is parsed, which shows that there was more.
LIMIT = MAX_BYTES + 1


@dataclass(frozen=True, slots=True)
class RawMail:
    """The bytes of a mail, and its position in the archive: a commit, an offset, a number, a file name.

    `read_to`: where reading resumes after it, if not at `position`: before a mail that could not be read.
    """

    raw: bytes
    position: str
    read_to: str | None = None


def head_of(raw: bytes) -> bytes:
    """Return the header block. Searching for two fixed ends is ten times faster than one pattern for both."""
    end = raw.find(b"\n\n")
    if raw.find(b"\r", 0, 2000) < 0:
        return raw[:end] if end >= 0 else raw
    crlf = raw.find(b"\r\n\r\n", 0, end if end >= 0 else len(raw))
    ends = [each for each in (end, crlf) if each >= 0]
    return raw[: min(ends)] if ends else raw
