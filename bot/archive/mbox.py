"""mbox files, plain or gzipped: mboxrd as lore serves it, and the mboxo of others (RFC 4155, mbox(5))."""

from __future__ import annotations

import gzip
import mmap
import re
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from bot.archive.raw import RawMail
from bot.errors import Unreadable

# A separator: "From ", an address of a kind, a date. A body line "From here on" has no year at its end.
_SEPARATOR = re.compile(rb"^From [^\n]{0,300}\b\d{4}(?: [+-]\d{4})?\r?\n", re.M)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)


def read_mbox(path: str | Path) -> Iterator[RawMail]:
    """The mails of an mbox; positions are offsets in the uncompressed file.

    Nothing is loaded but the mail at hand. A gzipped file that is cut off gives what it holds, then
    raises Unreadable.
    """
    path = Path(path)
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            yield from _read_gzip(path)
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from _read(data)


def _read_gzip(path: Path) -> Iterator[RawMail]:
    broken: Exception | None = None
    with tempfile.TemporaryFile() as plain:
        try:
            with gzip.open(path, "rb") as packed:
                while block := packed.read1(1 << 20):  # what is sound before a break is not lost with it
                    plain.write(block)
        except (OSError, EOFError, zlib.error) as error:
            broken = error
        if plain.tell():
            plain.flush()
            with mmap.mmap(plain.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from _read(data)
    if broken:
        raise Unreadable(f"{path}: the gzip data is broken ({broken}); fetch the file again")


def _read(data: mmap.mmap) -> Iterator[RawMail]:
    first = _SEPARATOR.match(data)
    if not first:
        # Not an mbox, but perhaps a mail as it stands.
        yield RawMail(data[:], "0")
        return
    begin, position = first.end(), first.start()
    while True:
        following = _next_separator(data, begin)
        yield RawMail(_unquoted(data[begin : following.start() if following else len(data)]), str(position))
        if not following:
            return
        begin, position = following.end(), following.start()


def _next_separator(data: mmap.mmap, begin: int) -> re.Match[bytes] | None:
    """The next separator: below an empty line, or in lore's own form, which no body line can have (mboxrd)."""
    place = begin
    while True:
        place = data.find(b"\nFrom ", place - 1 if place else 0)
        if place < 0:
            return None
        found = _SEPARATOR.match(data, place + 1)
        above = data[max(0, place - 2) : place]
        if found and (found[0].startswith(b"From mboxrd@z ") or above.endswith(b"\n") or above == b"\n\r"):
            return found
        place += 2


def _unquoted(raw: bytes) -> bytes:
    """A mail without the empty line that ends it in the mbox, its ">From " lines as they were sent."""
    if b">From " in raw:
        raw = _QUOTED_FROM.sub(rb"\1", raw)
    return raw[:-1] if raw.endswith(b"\n\n") else raw
