"""Archives that are files: an mbox, a single mail, a Maildir, and standard input.

An mbox may be plain or compressed with gzip or xz, lore's mboxrd or the mboxo of others (RFC 4155, mbox(5)). A
Maildir has one file per mail, in cur/ and new/. Standard input is an mbox or a mail, as a mail server pipes it to a
program.

All of them are *snapshots*: they can't resume, so they are read whole or not at all. The cursor holds size and time
stamp as of the last reading, and tells whether anything may be new. One mail at a time is in memory, and of a large
one only as much as shows that it is too large.
"""

import gzip
import lzma
import mmap
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.git.repository import Unreadable
from bot.mail.message import MAX_BYTES
from tracker.domain.events import ArchiveKind

# --- Raw mail ---

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
    ends = [offset for offset in (end, crlf) if offset >= 0]
    return raw[: min(ends)] if ends else raw


# --- Snapshots ---


class SnapshotSource:
    """Base class of sources that can't resume."""

    __slots__ = ()
    resumes = False
    exclusive = True
    kind = ArchiveKind.FILE

    def goal(self) -> str:
        return ""

    def is_done(self, cursor: str, goal: str) -> bool:
        return cursor == goal

    def resume(self, cursor: str) -> str:
        return ""

    def after(self, cursor: str, position: str, seen: int) -> str:
        return position


def fingerprint(paths: Iterable[Path]) -> str:
    """Return size and modification time; they change whenever a file or a folder may have something new."""
    stats = [path.stat() for path in paths]
    return " ".join(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)


# --- mbox ---

# A separator: "From ", something like an address, a date. A body line "From here on" has no year at its end.
_HEADER = re.compile(rb"[!-9;-~]{1,200}:|[!-9;-~]{1,200}[ \t]+:")  # RFC 5322, 2.2 and 4.5
_SEPARATOR = re.compile(rb"^From [^\n]{0,300}\b\d{4}(?: [+-]\d{4})?\r?\n", re.M)
_PACKED: dict[bytes, Callable[..., IO[bytes]]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}  # type: ignore[dict-item]
# A compressed mbox may unpack to so many bytes, or to so many times its size; mail shrinks to a quarter.
_UNPACKED = 4 << 30
_UNPACKED_RATIO = 50
_WINDOW = 16 << 20  # bytes of a mapped file that are looked at before they are given back
_MOST_MARKS = 100  # before a quoted "From "


@dataclass(frozen=True, slots=True)
class FileSource(SnapshotSource):
    """An mbox, also compressed, or a single mail."""

    path: Path
    name: str

    def goal(self) -> str:
        return fingerprint([self.path])

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        return read_mbox(self.path, must_be_mail=True)


def read_mbox(path: str | Path, *, must_be_mail: bool = False) -> Iterator[RawMail]:
    """Yield the mails of an mbox; positions are byte offsets in the uncompressed file.

    One mail at a time is in memory. A truncated compressed file yields what it holds, then raises Unreadable; so does,
    with `must_be_mail`, a file without any. What was piped to us is kept whatever it is.
    """
    path = Path(path)
    if path.stat().st_size == 0:
        return
    broken: Exception | None = None
    # A copy, since a file that is truncated while it is mapped would kill us.
    with path.open("rb") as file, tempfile.TemporaryFile() as copy:
        begin = file.read(6)
        unpack = next((unpack for magic, unpack in _PACKED.items() if begin.startswith(magic)), None)
        if unpack is None:
            file.seek(0)
            shutil.copyfileobj(file, copy, 1 << 20)
        else:
            try:
                most = max(_UNPACKED, _UNPACKED_RATIO * path.stat().st_size)
                with unpack(path, "rb") as packed:
                    while block := packed.read1(1 << 20):  # type: ignore[attr-defined]  # keeps what is before the damage
                        copy.write(block)
                        if copy.tell() > most:
                            raise OSError(f"more than {most >> 20:,} MB unpacked")
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                broken = error
        if copy.tell():
            copy.flush()
            with mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from _read(data, str(path) if must_be_mail else "")
    if broken:
        raise Unreadable(f"{path}: the compressed data is damaged ({broken}); fetch the file again")


def _read(data: mmap.mmap, name: str) -> Iterator[RawMail]:
    first = _SEPARATOR.match(data)
    if not first:
        if name and not _HEADER.match(data[:2000].lstrip(b"\xef\xbb\xbf\r\n")):
            raise Unreadable(f"{name}: no mail: expected an mbox, or a mail that begins with its headers")
        yield RawMail(data[:LIMIT], "0")  # not an mbox, but a single mail
        return
    begin, position, done = first.end(), first.start(), 0
    while True:
        following = _next_separator(data, begin)
        end = following.start() if following else len(data)
        # Nothing between two separators; 350 kB may unpack to millions of them
        if following and end - begin <= _LINE_ENDS and not data[begin:end].strip(b"\r\n"):
            begin, position = following.end(), following.start()
            continue
        raw = data[begin : min(end, begin + LIMIT)]
        done = _give_back(data, done, end)
        raw = _as_sent(raw)
        # An empty line ends a mail in an mbox.
        yield RawMail(raw[:-1] if raw.endswith(b"\n\n") else raw, str(position))
        if not following:
            return
        begin, position = following.end(), following.start()


_LINE_ENDS = 4  # bytes of two line ends


def _as_sent(raw: bytes) -> bytes:
    """Return a mail of an mboxrd without the mark before each "From " of its lines, one level of marks after the other:
    a pattern took 1.8 GB and 6 s for 56 MB of such lines, this takes 0.4 s.
    """
    marks = b">"
    while marks + b"From " in raw:
        raw = raw.replace(b"\n" + marks + b"From ", b"\n" + marks[1:] + b"From ")
        marks += b">"
        if len(marks) > _MOST_MARKS:
            break
    return raw


def _next_separator(data: mmap.mmap, begin: int) -> re.Match[bytes] | None:
    """Return the next separator: below an empty line, or in lore's own form, which no body line has (mboxrd)."""
    offset = begin
    while True:
        offset = _find(data, b"\nFrom ", offset - 1 if offset else 0)
        if offset < 0:
            return None
        match = _SEPARATOR.match(data, offset + 1)
        above = data[max(0, offset - 2) : offset]
        if match and (match[0].startswith(b"From mboxrd@z ") or above.endswith(b"\n") or above == b"\n\r"):
            return match
        offset += 2


def _find(data: mmap.mmap, wanted: bytes, begin: int) -> int:
    """Return where the bytes are found first, or -1, without keeping a large mail in memory."""
    while True:
        offset = data.find(wanted, begin, begin + _WINDOW + len(wanted))
        if offset >= 0 or begin + _WINDOW >= len(data):
            return offset
        _give_back(data, begin, begin + _WINDOW)
        begin += _WINDOW


def _give_back(data: mmap.mmap, begin: int, end: int) -> int:
    """Let the kernel drop what is between two offsets from memory, if it is worth a call; return up to where it did."""
    first, last = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if last - first < _WINDOW // 2:
        return begin
    data.madvise(mmap.MADV_DONTNEED, first, last - first)
    return last


# --- Maildir ---


@dataclass(frozen=True, slots=True)
class MaildirSource(FileSource):
    """A Maildir: its mails by file name, which is by time of delivery; symlinks are not followed."""

    kind: ArchiveKind = ArchiveKind.DELIVERY

    def goal(self) -> str:
        return fingerprint([self.path / "cur", self.path / "new"])

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        files = [file for folder in ("cur", "new") for file in (self.path / folder).iterdir()]
        for file in sorted(files, key=lambda entry: entry.name):
            if file.is_file() and not file.is_symlink():
                with file.open("rb") as opened:
                    raw = opened.read(LIMIT)
                yield RawMail(raw, os.fsencode(file.name).decode("utf-8", "backslashreplace"))


# --- Standard input ---


@dataclass(frozen=True, slots=True)
class PipeSource(SnapshotSource):
    """Standard input by way of a temporary file, so that a large mbox is not held in memory."""

    name: str = "-"
    exclusive: bool = False  # a mail server starts one process per mail
    kind: ArchiveKind = ArchiveKind.DELIVERY

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        with tempfile.NamedTemporaryFile(prefix="perfwork-", suffix=".mbox") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
            copy.flush()
            yield from read_mbox(copy.name)
