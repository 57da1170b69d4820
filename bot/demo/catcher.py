"""An SMTP server on loopback that files received mail in a list archive and relays nothing."""

from __future__ import annotations

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.demo.inbox import DemoInbox


class Catcher:
    """The aiosmtpd handler."""

    def __init__(self, inbox: DemoInbox) -> None:
        self.inbox = inbox
        self.received: list[bytes] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        raw = envelope.original_content or b""
        self.received.append(raw)
        self.inbox.add(raw.replace(b"\r\n", b"\n"))
        return "250 filed"


def serve(inbox: DemoInbox, port: int) -> Controller:
    """Start a server on 127.0.0.1 and return it; `stop()` ends it. Port 0: any free port."""
    controller = Controller(Catcher(inbox), hostname="127.0.0.1", port=port)
    controller.start()
    return controller
