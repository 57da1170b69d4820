"""The answer to a command that failed: which line, and why. To its writer alone, in his thread."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.mail import ComposedMail
from bot.compose.message_id import message_id
from bot.compose.recipients import Recipient, Recipients
from bot.compose.threading import below
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import is_message_id, one_line
from bot.replies.commands.grammar import MAX_COMMANDS
from bot.replies.reading import Reading

WIDTH = 76
MOST_LINES = 10
MOST_REFERENCES = 20


@dataclass(frozen=True, slots=True)
class FailedLine:
    """A line as it was written, and a sentence on what is wrong with it."""

    text: str
    why: str


def answer_to(reading: Reading, tag: str, sha: str, identity: BotIdentity, now: datetime) -> ComposedMail:
    """The answer to a mail whose commands failed. Nothing of the mail reaches a header but its ids and its subject,
    and these only where they are safe there.
    """
    mail = reading.mail
    answered = mail.message_id if is_message_id(mail.message_id) else ""
    lists = (Recipient(Address("", identity.list_address), "our own list"),) if identity.list_address else ()
    writer = Recipient(replace(mail.author, name=one_line(mail.author.name, 80)), "who wrote the command")
    place = below(answered, mail.references[-MOST_REFERENCES:])
    return ComposedMail(
        message_id=message_id(now, tag, identity, mail.message_id),
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(tag)),
        recipients=Recipients((writer,), lists),  # the archive of our list proves that it went out
        subject=f"Re: {one_line(_bare(mail.subject), 200)}",
        date=now.replace(microsecond=0),
        body=_body(reading, sha, identity),
        report_tag=tag,
        in_reply_to=place.answers,
        references=place.references,
        submitted="auto-replied",
    )


def _bare(subject: str) -> str:
    return subject[3:].lstrip() if subject[:3].lower() == "re:" else subject


def _body(reading: Reading, sha: str, identity: BotIdentity) -> str:
    lines = list(_failed(reading))
    text = render_to_string(
        "mail/answer.txt",
        {
            "author_name": one_line(reading.mail.author.name, 60),
            "bot": one_line(identity.name, 60),
            "which": "a line" if len(lines) == 1 else "some lines",
            "ask": "asks" if len(lines) == 1 else "ask",
            "lines": lines,
            "help": identity.help("answering"),
            "page": identity.page(sha[:12]),
        },
    )
    kept = (line.rstrip() for line in text.splitlines())
    return "\n".join("-- " if line == "--" else line for line in kept) + "\n"


def _failed(reading: Reading) -> Iterator[FailedLine]:
    if reading.commands.too_many:
        yield FailedLine("(all of them)", f"More than {MAX_COMMANDS} commands in a mail are refused as one.")
    own = reading.own_text.split("\n")
    for bad in reading.commands.bad[:MOST_LINES]:
        written = own[bad.line - 1] if bad.line <= len(own) else bad.text
        yield FailedLine(one_line(written, 74), textwrap.fill(f"Line {bad.line}: {one_line(bad.why, 200)}.", WIDTH))
