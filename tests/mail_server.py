"""A scriptable mail server on loopback: it can reject, defer, hang up at a given byte, or accept and vanish."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.mail.message import parse
from bot.outbox.transports import Server


class Moody:
    """An aiosmtpd handler that gives the configured answers and keeps what it accepted."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.reached: list[list[str]] = []
        self.senders: list[str] = []
        self.greeted: list[str] = []
        self.options: list[list[str]] = []
        self.sessions = 0
        self.rcpt: dict[str, str] = {}  # answers for particular recipients; 250 for all others
        self.mail = "250 fine"  # the answer to MAIL
        self.answer = "250 taken"  # the answer to the final dot
        self.vanish = False  # hang up after the final dot, without an answer
        self.stall = 0.0  # seconds before the final dot is answered

    @property
    def ids(self) -> Counter[str]:
        """How often each Message-ID was accepted."""
        return Counter(parse(raw).message_id for raw in self.taken)

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.sessions += 1
        self.greeted.append(hostname)
        session.host_name = hostname
        return responses

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.options.append(options)
        if self.mail.startswith("250"):
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return self.mail

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = self.rcpt.get(address, "250 fine")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        await asyncio.sleep(self.stall)
        if self.answer.startswith("250"):
            self.taken.append(envelope.original_content or b"")
            self.reached.append(list(envelope.rcpt_tos))
            self.senders.append(envelope.mail_from or "")
        if self.vanish:
            server.transport.abort()
        return self.answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def mail_server(mood: Any, **options: Any) -> Iterator[Server]:
    """Run a server with the given handler, and yield its address."""
    controller = Controller(mood, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        yield Server("127.0.0.1", controller.port, timeout=20)
    finally:
        controller.stop()
