"""Bytes to Mail: one mail as received becomes one frozen value, whatever the bytes are."""

from __future__ import annotations

import email
import email.policy
from dataclasses import dataclass
from datetime import datetime
from email.message import Message as Part

from bot.replies import headers, parts
from bot.replies.addresses import Address, parse_addresses

MAX_BYTES = 10_000_000  # the rest of a larger mail is not looked at; its bytes are kept all the same
# Headers that say that a machine wrote.
_KEPT = (
    "auto-submitted",
    "precedence",
    "return-path",
    "x-autoreply",
    "x-autorespond",
    "x-failed-recipients",
    "x-perfwork-report",
    "x-patchwork-bot",
    "content-type",
)
# Where the mail went, though its To and Cc may not say so.
_ENVELOPE = ("delivered-to", "x-original-to", "envelope-to", "resent-to", "resent-cc", "bcc")


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail as it stands: ids without brackets, addresses in lower case, the date in UTC."""

    message_id: str
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    subject: str
    date: datetime | None
    author: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    delivered_to: tuple[Address, ...]  # by the mail servers on its way
    text: str
    charset: str  # that the text was declared to be in, "" where none was
    attachments: tuple[parts.Attachment, ...]
    marks: tuple[tuple[str, str], ...]  # headers that say who or what wrote it, names in lower case
    problems: tuple[str, ...]

    @property
    def parent(self) -> str:
        """The mail that this one answers: the first In-Reply-To, else the last reference."""
        if self.in_reply_to:
            return self.in_reply_to[0]
        return self.references[-1] if self.references else ""

    @property
    def ancestors(self) -> tuple[str, ...]:
        """Every mail that it says to follow, nearest first, itself left out."""
        every = dict.fromkeys((*self.in_reply_to, *reversed(self.references)))
        return tuple(each for each in every if each != self.message_id)

    @property
    def thread_root(self) -> str:
        """The oldest mail of its thread that it names; itself where it names none."""
        return self.references[0] if self.references else self.parent or self.message_id

    @property
    def recipients(self) -> tuple[Address, ...]:
        return self.to + self.cc

    def mark(self, name: str) -> str:
        """The value of one of the kept headers, or ""."""
        return next((value for key, value in self.marks if key == name), "")


def parse(raw: bytes) -> Mail:
    """Read one mail. Never raises: what is missing is empty, and what was guessed is in `problems`."""
    problems: list[str] = []
    if len(raw) > MAX_BYTES:
        raw = raw[:MAX_BYTES]
        problems.append("too_large")
    try:
        message: Part = email.message_from_bytes(raw, policy=email.policy.compat32)
        body = parts.read_body(message)
    except (RecursionError, ValueError, LookupError, AttributeError, TypeError) as error:
        # Thousands of nested parts, and other junk that the parser gives up on: keep the headers.
        problems.append(f"unparsable: {type(error).__name__}")
        head = raw.partition(b"\n\n")[0]
        message = email.message_from_bytes(_plain(head), policy=email.policy.compat32)
        body = parts.Body("", (), ())
    return _mail(message, body, problems)


def _plain(head: bytes) -> bytes:
    """A header block without what made its body unreadable."""
    lines = [line for line in head.split(b"\n") if not line.lower().startswith(b"content-")]
    return b"\n".join(lines) + b"\n\n"


def _mail(message: Part, body: parts.Body, problems: list[str]) -> Mail:
    # Raw: the parser's own text of a header has lost what is not ASCII in it.
    values: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        values.setdefault(name.lower(), []).append(headers.to_text(str(value)))

    def all_of(name: str) -> str:
        return ", ".join(values.get(name, ()))

    def first(name: str) -> str:
        return next(iter(values.get(name, ())), "")

    author = _named(parse_addresses(first("from"))) or parse_addresses(headers.decode(first("from")))
    ids = headers.message_ids(first("message-id"))
    if not ids:
        problems.append("no_message_id")
    if not author:
        problems.append("no_author")
    return Mail(
        message_id=ids[0] if ids else "",
        in_reply_to=headers.message_ids(all_of("in-reply-to")),
        references=headers.message_ids(all_of("references")),
        subject=headers.decode(first("subject")),
        date=headers.date(first("date"), values.get("received", ())),
        author=author[0] if author else Address("", ""),
        to=_named(parse_addresses(all_of("to"))),
        cc=_named(parse_addresses(all_of("cc"))),
        delivered_to=tuple(address for name in _ENVELOPE for address in parse_addresses(all_of(name))),
        text=body.text,
        charset=body.charset,
        attachments=body.attachments,
        marks=tuple((name, headers.decode(first(name))) for name in _KEPT if name in values),
        problems=(*problems, *body.problems),
    )


def _named(addresses: tuple[Address, ...]) -> tuple[Address, ...]:
    return tuple(Address(headers.decode(each.name), each.email) if each.name else each for each in addresses)
