"""A Maildir: mail is stored, not sent; for tests and custom gateways: `maildir:///path`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus


@dataclass(frozen=True, slots=True)
class MaildirTransport:
    """Files are named by a hash of the Message-ID, so that a mail is stored once, however often it is delivered."""

    path: Path

    def close(self) -> None:
        """Nothing is open."""

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`. The last step is a rename: only a power failure leaves doubt."""
        name = f"{hashlib.sha256(envelope.message_id.encode('utf-8', 'replace')).hexdigest()[:40]}.perfwork"
        draft = self.path / "tmp" / f"{name}.{os.getpid()}"
        try:
            for each in ("tmp", "new", "cur"):
                (self.path / each).mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                head = f"Return-Path: <{envelope.sender}>\n" + "".join(
                    f"Delivered-To: {to}\n" for to in envelope.recipients
                )
                file.write(head.encode() + envelope.raw.replace(b"\r\n", b"\n"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            return SendOutcome(SendStatus.NO_SERVER, f"{self.path}: {error.strerror}")
        if not confirm():
            draft.unlink(missing_ok=True)
            return SendOutcome(SendStatus.NOT_NOW)
        try:
            draft.rename(self.path / "new" / name)
        except OSError as error:
            return SendOutcome(SendStatus.LATER, f"{self.path}: {error.strerror}")
        return SendOutcome(SendStatus.SENT, str(self.path))
