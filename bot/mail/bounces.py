"""A bounce: whom a mail of ours did not reach, why, and which mail that was. flufl.bounce knows the odd forms."""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message

from flufl.bounce import all_failures

from bot.mail.message import without_frame

MOST_ADDRESSES = 200
MOST_BYTES = 64_000  # what a mail system has to say stands at the beginning
MOST_IDS = 20
_LONG = re.compile(rb"([^\n]{998})[^\n]+")  # RFC 5322 section 2.1.1; the detectors are slow on longer lines
_ID = re.compile(rb"^message-id:\s*<([^<>\s]{1,900})>", re.I | re.M)
_ADDRESS = re.compile(r"[^\s<>;,@]+@[^\s<>;,@]+")


@dataclass(frozen=True, slots=True)
class Bounce:
    """What came back. `failed`: address in lower case → the words against it; `delayed`: whom it may still reach;
    `message_ids`: those found in the returned part, the nearest first.
    """

    failed: Mapping[str, str] = field(default_factory=dict)
    delayed: frozenset[str] = frozenset()
    message_ids: tuple[str, ...] = ()


def read_bounce(raw: bytes) -> Bounce:
    """Read a mail that is a bounce. Never raises: of junk, nothing is known."""
    raw = _LONG.sub(rb"\1", without_frame(raw[:MOST_BYTES]))
    try:
        message = email.message_from_bytes(raw, policy=email.policy.compat32)
        delayed, failed = all_failures(message)
        words = dict(_words(message))
    except Exception:  # whatever the parser or one of twenty detectors makes of hostile bytes
        return Bounce(message_ids=_ids(raw))
    dead = sorted(_text(each) for each in failed)[:MOST_ADDRESSES]
    slow = frozenset(_text(each) for each in delayed) - frozenset(dead)
    return Bounce({each: words.get(each, "") or "came back" for each in dead if each}, slow, _ids(raw))


def _ids(raw: bytes) -> tuple[str, ...]:
    """The Message-IDs behind the bounce's own head."""
    body = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2]
    found = (each.decode("utf-8", "replace") for each in _ID.findall(body))
    return tuple(dict.fromkeys(found))[:MOST_IDS]


def _words(message: Message) -> Iterator[tuple[str, str]]:
    """Each recipient of a delivery status (RFC 3464 section 2.3), with its status and what the server said."""
    for part in message.walk():
        if part.get_content_type() not in ("message/delivery-status", "message/global-delivery-status"):
            continue
        blocks = part.get_payload()
        for block in blocks[: MOST_ADDRESSES + 1] if isinstance(blocks, list) else []:
            if not isinstance(block, Message):
                continue
            words = " ".join(f"{block.get('Status', '')} {_typed(block.get('Diagnostic-Code', ''))}".split())
            for name in ("Original-Recipient", "Final-Recipient"):
                if found := _ADDRESS.search(_typed(block.get(name, ""))):
                    yield found[0].lower(), words[:500]


def _typed(value: object) -> str:
    """A field of the form "type; value", without its type."""
    kind, semicolon, rest = str(value).partition(";")
    return rest.strip() if semicolon else kind.strip()


def _text(address: bytes | str) -> str:
    text = address.decode("utf-8", "replace") if isinstance(address, bytes) else address
    return text.strip().strip("<>").lower()[:320]
