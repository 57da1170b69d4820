"""Maildir: one file per mail, in cur/ and new/."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.archives.sources.raw import LIMIT, RawMail
from bot.archives.sources.snapshot import SnapshotSource, fingerprint


@dataclass(frozen=True, slots=True)
class MaildirSource(SnapshotSource):
    """A Maildir."""

    path: Path
    name: str

    @property
    def address(self) -> str:
        return str(self.path)

    def goal(self) -> str:
        return fingerprint([self.path / "cur", self.path / "new"])

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        return read_maildir(self.path)


def is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() and (path / "new").is_dir()


def read_maildir(path: Path) -> Iterator[RawMail]:
    """Yield the mails of a Maildir by file name, which is by time of delivery; symlinks are not followed."""
    files = [file for folder in ("cur", "new") for file in (path / folder).iterdir()]
    for file in sorted(files, key=lambda each: each.name):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as opened:
                raw = opened.read(LIMIT)
            yield RawMail(raw, os.fsencode(file.name).decode("utf-8", "backslashreplace"))
