"""The interface of a transport: it takes an envelope and returns an outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class SendStatus(StrEnum):
    """What is known of a mail after an attempt."""

    SENT = "sent"
    LATER = "later"  # nobody has it; this mail is tried again, later each time, and the round goes on
    REFUSED = "refused"  # nobody has it, and nobody will: it fails for good
    IN_DOUBT = "doubt"  # someone may have it: it is looked for in the archives, and never sent again by itself
    NO_SERVER = "no_server"  # nobody has it, and no other mail would be taken either: the round ends
    NOT_NOW = "not_now"  # `confirm` said no


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
