"""mbox files, plain or compressed with gzip or xz: lore's mboxrd, and the mboxo of others (RFC 4155, mbox(5))."""

from __future__ import annotations

import gzip
import lzma
import mmap
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.archives.sources.raw import LIMIT, RawMail
from bot.archives.sources.snapshot import SnapshotSource, fingerprint
from bot.errors import Unreadable

# A separator: "From ", something like an address, a date. A body line "From here on" has no year at its end.
_SEPARATOR = re.compile(rb"^From [^\n]{0,300}\b\d{4}(?: [+-]\d{4})?\r?\n", re.M)
_PACKED: dict[bytes, Callable[..., IO[bytes]]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}  # type: ignore[dict-item]
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)


@dataclass(frozen=True, slots=True)
class FileSource(SnapshotSource):
    """An mbox, also compressed, or a single mail."""

    path: Path
    name: str

    @property
    def address(self) -> str:
        return str(self.path)

    def goal(self) -> str:
        return fingerprint([self.path])

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        return read_mbox(self.path)


def read_mbox(path: str | Path) -> Iterator[RawMail]:
    """Yield the mails of an mbox; positions are byte offsets in the uncompressed file.

    One mail at a time is in memory. A truncated compressed file yields what it holds, then raises Unreadable.
    """
    path = Path(path)
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        begin = file.read(6)
        unpack = next((unpack for magic, unpack in _PACKED.items() if begin.startswith(magic)), None)
        if unpack:
            yield from _read_packed(path, unpack)
            return
        file.seek(0)
        with tempfile.TemporaryFile() as copy:  # a file that is truncated while it is mapped would kill us
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            with mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from _read(data)


def _read_packed(path: Path, unpack: Callable[..., IO[bytes]]) -> Iterator[RawMail]:
    broken: Exception | None = None
    with tempfile.TemporaryFile() as plain:
        try:
            with unpack(path, "rb") as packed:
                while block := packed.read1(1 << 20):  # type: ignore[attr-defined]  # keeps what is before the damage
                    plain.write(block)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            broken = error
        if plain.tell():
            plain.flush()
            with mmap.mmap(plain.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from _read(data)
    if broken:
        raise Unreadable(f"{path}: the compressed data is damaged ({broken}); fetch the file again")


def _read(data: mmap.mmap) -> Iterator[RawMail]:
    first = _SEPARATOR.match(data)
    if not first:
        # Not an mbox, but perhaps a single mail.
        yield RawMail(data[:LIMIT], "0")
        return
    begin, position = first.end(), first.start()
    while True:
        following = _next_separator(data, begin)
        end = following.start() if following else len(data)
        yield RawMail(_unquoted(data[begin : min(end, begin + LIMIT)]), str(position))
        if not following:
            return
        begin, position = following.end(), following.start()


def _next_separator(data: mmap.mmap, begin: int) -> re.Match[bytes] | None:
    """Return the next separator: below an empty line, or in lore's own form, which no body line has (mboxrd)."""
    offset = begin
    while True:
        offset = data.find(b"\nFrom ", offset - 1 if offset else 0)
        if offset < 0:
            return None
        found = _SEPARATOR.match(data, offset + 1)
        above = data[max(0, offset - 2) : offset]
        if found and (found[0].startswith(b"From mboxrd@z ") or above.endswith(b"\n") or above == b"\n\r"):
            return found
        offset += 2


def _unquoted(raw: bytes) -> bytes:
    """Return a mail without the empty line that ends it in the mbox, its ">From " lines as they were sent."""
    if b">From " in raw:
        raw = _QUOTED_FROM.sub(rb"\1", raw)
    return raw[:-1] if raw.endswith(b"\n\n") else raw
