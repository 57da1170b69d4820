"""A Maildir: mail is filed and goes nowhere, for trying things and for gateways of one's own: `maildir:///path`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus


@dataclass(frozen=True, slots=True)
class MaildirTransport:
    """Its files bear the hash of a Message-ID, so that the same mail is there once, whoever delivers it again."""

    path: Path

    def close(self) -> None:
        """Nothing is open."""

    def send(self, letter: Envelope, last_word: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`. The last step is a rename: there is no doubt but after a power cut."""
        name = f"{hashlib.sha256(letter.message_id.encode('utf-8', 'replace')).hexdigest()[:40]}.perfwork"
        draft = self.path / "tmp" / f"{name}.{os.getpid()}"
        try:
            for each in ("tmp", "new", "cur"):
                (self.path / each).mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                head = f"Return-Path: <{letter.sender}>\n" + "".join(
                    f"Delivered-To: {to}\n" for to in letter.recipients
                )
                file.write(head.encode() + letter.raw.replace(b"\r\n", b"\n"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            return SendOutcome(SendStatus.NO_SERVER, f"{self.path}: {error.strerror}")
        if not last_word():
            draft.unlink(missing_ok=True)
            return SendOutcome(SendStatus.NOT_NOW)
        try:
            draft.rename(self.path / "new" / name)
        except OSError as error:
            return SendOutcome(SendStatus.LATER, f"{self.path}: {error.strerror}")
        return SendOutcome(SendStatus.SENT, str(self.path))
