"""Parse a bounce: which recipients failed, why, and for which of our mails.

Which mail is one, bot/replies/sender_kind.py decides. flufl.bounce knows the odd formats.
"""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message

from bot.mail.message import without_frame

MOST_ADDRESSES = 200
MOST_BYTES = 64_000  # the delivery status is near the beginning
MOST_IDS = 20
_LONG = re.compile(rb"([^\n]{998})[^\n]+")  # RFC 5322 section 2.1.1; the detectors are slow on longer lines
_ID = re.compile(rb"^message-id:\s*<([^<>\s]{1,900})>", re.I | re.M)
_ADDRESS = re.compile(r"[^\s<>;,@]+@[^\s<>;,@]+")


@dataclass(frozen=True, slots=True)
class Bounce:
    """Delivery failures. `failed`: address in lower case → the server's reason; `delayed`: addresses that may still be
    reached; `message_ids`: those found in the returned part, nearest first.
    """

    failed: Mapping[str, str] = field(default_factory=dict)
    delayed: frozenset[str] = frozenset()
    message_ids: tuple[str, ...] = ()


def read_bounce(raw: bytes) -> Bounce:
    """Parse a bounce. Never raises; junk gives an empty Bounce, at most with message ids."""
    from flufl.bounce import all_failures  # few readings meet a bounce

    raw = _LONG.sub(rb"\1", without_frame(raw[:MOST_BYTES]))
    below = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2]  # the bounce's own headers
    ids = tuple(dict.fromkeys(message_id.decode("utf-8", "replace") for message_id in _ID.findall(below)))[:MOST_IDS]
    try:
        message = email.message_from_bytes(raw, policy=email.policy.compat32)
        delayed, failed = all_failures(message)
        reasons = dict(_reasons(message))
    except Exception:  # the parser or one of twenty detectors may raise anything on hostile bytes
        return Bounce(message_ids=ids)
    failed_addresses = sorted(_address_text(address) for address in failed)[:MOST_ADDRESSES]
    delayed_addresses = frozenset(_address_text(address) for address in delayed) - frozenset(failed_addresses)
    failures = {address: reasons.get(address, "") or "no reason given" for address in failed_addresses if address}
    return Bounce(failures, delayed_addresses, ids)


def _reasons(message: Message) -> Iterator[tuple[str, str]]:
    """Yield each recipient of a delivery status (RFC 3464 section 2.3), with its status code and diagnostic."""
    for part in message.walk():
        if part.get_content_type() not in ("message/delivery-status", "message/global-delivery-status"):
            continue
        blocks = part.get_payload()
        for block in blocks[: MOST_ADDRESSES + 1] if isinstance(blocks, list) else []:
            if not isinstance(block, Message):
                continue
            reason = " ".join(f"{block.get('Status', '')} {_field_value(block.get('Diagnostic-Code', ''))}".split())
            for name in ("Original-Recipient", "Final-Recipient"):
                if match := _ADDRESS.search(_field_value(block.get(name, ""))):
                    yield match[0].lower(), reason[:500]


def _field_value(value: object) -> str:
    """Return the value of a "type; value" field."""
    kind, semicolon, rest = str(value).partition(";")
    return rest.strip() if semicolon else kind.strip()


def _address_text(address: bytes | str) -> str:
    text = address.decode("utf-8", "replace") if isinstance(address, bytes) else address
    return text.strip().strip("<>").lower()[:320]
