"""What a path holds: recognises archives, and opens each as a stream of raw mail with a cursor."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot import git
from bot.archive import lore, maildir, mbox, public_inbox
from bot.archive.raw import RawMail
from bot.errors import Unreadable


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to read. `has_cursor`: it grows at its end, and reading goes on where it stopped; a file without
    is read again as a whole, but only when it changed.
    """

    place: str
    format: str
    has_cursor: bool = False
    message_id: str = ""

    @property
    def fingerprint(self) -> str:
        """Of a file or a Maildir: changes whenever there may be something new in it. "" where there is none."""
        places = {"mbox": [""], "maildir": ["cur", "new"]}.get(self.format, [])
        stats = [(Path(self.place) / each).stat() for each in places]
        return " ".join(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)

    @property
    def name(self) -> str:
        """What it goes by in the database and in messages."""
        return printable(f"{self.place} {self.message_id}".strip())

    def mails(self, cursor: str = "") -> Iterator[RawMail]:
        """The mails after `cursor`; all of them where the format has none."""
        match self.format:
            case "public-inbox":
                return public_inbox.read_epoch(Path(self.place), cursor)
            case "standard input":
                return _standard_input()
            case "lore":
                return lore.read_thread(self.place, self.message_id)
            case "maildir":
                return maildir.read_maildir(Path(self.place))
            case _:
                return mbox.read_mbox(self.place)


def printable(name: str) -> str:
    """A file's name as text that can be shown and stored, whatever its bytes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def open_sources(name: str) -> list[Source]:
    """What a path on the command line holds: the epochs of an inbox, or one archive. `-` is standard input.

    Unreadable says in one line why there is nothing to read.
    """
    if name == "-":
        return [Source("-", "standard input")]
    path = Path(name).resolve()
    if not path.exists():
        raise Unreadable(f"{name}: there is no such file or directory")
    if path.is_file():
        return [Source(str(path), "mbox")]
    if maildir.is_maildir(path):
        return [Source(str(path), "maildir")]
    if found := public_inbox.epochs(path):
        for epoch in found:
            if not git.is_repository(epoch):
                raise Unreadable(f"{epoch}: not a git repository; clone the epoch again")
        return [Source(str(epoch), "public-inbox", has_cursor=True) for epoch in found]
    raise Unreadable(
        f"{name}: no archive of mail; expected a public-inbox (git/0.git), one epoch, a Maildir (cur/, new/), an mbox"
        " or a mail"
    )


def thread_source(server: str, message_id: str) -> Source:
    """A thread on a lore server; Unreadable where no server is set."""
    if not server.startswith(("http://", "https://")):
        raise Unreadable("no lore server is set: PERFWORK_LORE=https://lore.kernel.org/all")
    return Source(server, "lore", message_id=message_id)


def _standard_input() -> Iterator[RawMail]:
    """What is piped in, by way of a file of no name, so that a large mbox is not held in memory."""
    with tempfile.NamedTemporaryFile(prefix="perfwork-", suffix=".mbox") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
        copy.flush()
        yield from mbox.read_mbox(copy.name)
