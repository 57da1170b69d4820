"""The port that every way out has: a letter goes in, an outcome that says what is known comes back."""

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
    DOUBT = "doubt"
    NO_SERVER = "no_server"
    NOT_NOW = "not_now"


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The fate, and the server's words. Of a mail that was sent: who was turned down (`refused`), and for whom it may
    be tried again (`deferred`), each with the words.
    """

    fate: SendStatus
    words: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope and its content: the return path, the addresses, and the bytes with CRLF as line ends."""

    message_id: str
    sender: str
    recipients: Sequence[str]
    raw: bytes


class Transport(Protocol):
    """A way out, for one letter after the other."""

    def send(self, letter: Envelope, last_word: Callable[[], bool]) -> SendOutcome:
        """Hand over one letter. `last_word` is asked when all is ready and one step more lets it go; where it says no,
        nothing has left us (NOT_NOW). Whatever breaks before that step is no doubt; what breaks behind it is.
        """

    def close(self) -> None:
        """Say goodbye. May be called twice."""


def text_of(words: bytes | str) -> str:
    """A server's words as one line of at most 500 letters."""
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return " ".join(text.replace("\0", "").split())[:500]
