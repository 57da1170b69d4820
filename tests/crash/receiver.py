"""The receiving mail server: it has random delays, counts what it accepts, and archives the list's copies."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.mail.message import parse
from tests.support.servers import free_port


class Receiver:
    """An aiosmtpd handler. Of the copies for its mbox archive, one in `lost` gets lost, as on real lists."""

    def __init__(self, archive: Path, slow: float = 0.02, lost: int = 10, seed: int = 0) -> None:
        self.archive, self.slow, self.lost = archive, slow, lost
        self.taken: Counter[str] = Counter()
        self.unlisted: set[str] = set()
        self.differs: set[str] = set()  # Message-IDs whose second copy had different bytes
        self._first: dict[str, bytes] = {}
        self._dice = random.Random(seed)
        self._lock = threading.Lock()
        archive.touch()

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        await asyncio.sleep(self._dice.random() * self.slow)
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        raw = envelope.original_content or b""
        await asyncio.sleep(self._dice.random() * self.slow)
        self._take(parse(raw).message_id, raw)
        await asyncio.sleep(self._dice.random() * self.slow)  # accepted, but not answered yet
        return "250 taken"

    def _take(self, message_id: str, raw: bytes) -> None:
        with self._lock:
            self.taken[message_id] += 1
            if self._first.setdefault(message_id, raw) != raw:
                self.differs.add(message_id)
            if self.taken[message_id] > 1:
                return  # archives drop the second copy
            if self.lost and self._dice.randrange(self.lost) == 0:
                self.unlisted.add(message_id)
                return
            body = raw.replace(b"\r\n", b"\n").replace(b"\nFrom ", b"\n>From ")
            with self.archive.open("ab") as mbox:
                mbox.write(b"From list@lists.example.org Sun Nov 22 05:00:00 2026\n" + body + b"\n")


def serve(receiver: Receiver) -> Controller:
    """Start a server and return its controller; `stop()` ends it."""
    controller = Controller(receiver, hostname="127.0.0.1", port=free_port())
    controller.start()
    return controller
