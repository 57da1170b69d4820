"""The interface of a transport: it takes an envelope and returns an outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class SendStatus(StrEnum):
    """What is known of a mail after an attempt."""

    SENT = "sent"
    LATER = "later"
    REFUSED = "refused"
    IN_DOUBT = "doubt"
    NO_SERVER = "no_server"
    NOT_NOW = "not_now"


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The status, and the server's response. For a sent mail: the recipients that were rejected (`refused`) and those
    to retry (`deferred`), each with the response.
    """

    status: SendStatus
    reply: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope and its content: return path, recipients, and the bytes with CRLF line ends."""

    message_id: str
    sender: str
    recipients: Sequence[str]
    raw: bytes


class Transport(Protocol):
    """Sends one envelope after the other."""

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """Send one envelope. `confirm` is called right before the step that commits it; if it returns False, nothing is
        sent (NOT_NOW). An error before that step leaves no doubt; an error after it does.
        """

    def close(self) -> None:
        """Close the connection. May be called twice."""


def text_of(reply: bytes | str) -> str:
    """Return a server's response as one line of at most 500 characters."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return " ".join(text.replace("\0", "").split())[:500]
