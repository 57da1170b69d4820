"""Standard input: an mbox or a mail, as a mail server pipes it to a program."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from bot.archives.sources.mbox import read_mbox
from bot.archives.sources.raw import RawMail
from bot.archives.sources.snapshot import SnapshotSource


@dataclass(frozen=True, slots=True)
class PipeSource(SnapshotSource):
    """Standard input by way of a temporary file, so that a large mbox is not held in memory."""

    name: str = "-"
    exclusive: bool = False  # a mail server starts one process per mail

    @property
    def address(self) -> str:
        return "-"

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        with tempfile.NamedTemporaryFile(prefix="perfwork-", suffix=".mbox") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
            copy.flush()
            yield from read_mbox(copy.name)
