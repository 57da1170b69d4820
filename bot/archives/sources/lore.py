"""Fetch a thread by Message-ID from a lore server, with the library that b4 uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.archives.sources.mbox import read_mbox
from bot.archives.sources.raw import RawMail
from bot.archives.sources.snapshot import SnapshotSource
from bot.errors import Unreadable


@dataclass(frozen=True, slots=True)
class ThreadSource(SnapshotSource):
    """One thread on one server."""

    server: str
    message_id: str
    exclusive: bool = False

    @property
    def name(self) -> str:
        return f"{self.server} {self.message_id}"

    @property
    def address(self) -> str:
        return self.name

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        return read_thread(self.server, self.message_id)


def read_thread(server: str, message_id: str) -> Iterator[RawMail]:
    """Yield the mails of the thread with `message_id`. `server` comes from our settings, never from mail."""
    import liblore

    node = liblore.LoreNode(server, follow_upstream=False, request_timeout=(5.0, 60.0))
    try:
        mbox = node.get_mbox_by_msgid(message_id.strip("<> "))
    except (liblore.LibloreError, LookupError, OSError) as error:
        raise Unreadable(f"{server}: {message_id}: {' '.join(str(error).split())[:300]}") from error
    finally:
        node.close()
    if not mbox:
        raise Unreadable(f"{server}: there is no thread with {message_id}")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "thread.mbox"
        file.write_bytes(mbox)
        yield from read_mbox(file)
