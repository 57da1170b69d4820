"""What a path holds: recognises archives, and opens each as a stream of raw mail with a cursor."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.archive import git, maildir, mbox, public_inbox
from bot.archive.errors import ArchiveError
from bot.archive.raw import RawMail


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to read. `has_cursor`: it grows at its end, and reading can go on where it stopped."""

    path: Path
    format: str
    has_cursor: bool = False

    def mails(self, cursor: str = "") -> Iterator[RawMail]:
        """The mails after `cursor`; all of them where the format has none."""
        match self.format:
            case "public-inbox":
                return public_inbox.read_epoch(self.path, cursor)
            case "maildir":
                return maildir.read_maildir(self.path)
            case _:
                return mbox.read_mbox(self.path)


def open_sources(name: str) -> list[Source]:
    """What a path on the command line holds: the epochs of an inbox, or one archive. `-` is standard input.

    ArchiveError says in one line why there is nothing to read.
    """
    if name == "-":
        return [Source(_standard_input(), "mbox")]
    path = Path(name).resolve()
    if not path.exists():
        raise ArchiveError(f"{name}: there is no such file or directory")
    if path.is_file():
        return [Source(path, "mbox")]
    if maildir.is_maildir(path):
        return [Source(path, "maildir")]
    if found := public_inbox.epochs(path):
        for epoch in found:
            if not git.is_repository(epoch):
                raise ArchiveError(f"{epoch}: not a git repository; clone the epoch again")
        return [Source(epoch, "public-inbox", has_cursor=True) for epoch in found]
    raise ArchiveError(
        f"{name}: no archive of mail; expected a public-inbox (git/0.git), one epoch, a Maildir (cur/, new/), an mbox or a mail"
    )


def _standard_input() -> Path:
    with tempfile.NamedTemporaryFile(prefix="perfwork-", suffix=".mbox", delete=False) as copy:
        while block := sys.stdin.buffer.read(1 << 20):
            copy.write(block)
    return Path(copy.name)
