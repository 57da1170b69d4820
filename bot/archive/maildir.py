"""Maildir and single mails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bot.archive.raw import RawMail


def is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() and (path / "new").is_dir()


def read_maildir(path: Path) -> Iterator[RawMail]:
    """The mails of a Maildir by name, which is by time of delivery; links are not followed."""
    files = [file for folder in ("cur", "new") for file in (path / folder).iterdir()]
    for file in sorted(files, key=lambda each: each.name):
        if file.is_file() and not file.is_symlink():
            yield RawMail(file.read_bytes(), os.fsencode(file.name).decode("utf-8", "backslashreplace"))
