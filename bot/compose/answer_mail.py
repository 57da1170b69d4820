"""The reply to a mail whose commands failed: which line, and why. Sent in the thread, to its author and our list."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.mail import ComposedMail
from bot.compose.message_id import message_id
from bot.compose.recipients import Recipient, Recipients
from bot.compose.threading import reply_position
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import is_message_id, one_line
from bot.replies.commands.grammar import MAX_COMMANDS
from bot.replies.reading import Reading

WIDTH = 76
MOST_LINES = 10
MOST_REFERENCES = 20
# Links are not passed on, since their writer may be anybody: URLs, and hosts with a path.
_LINK = re.compile(
    r"(?:\b[a-z]{1,20}://|\bwww\.|\bmailto:)\S+|\b[\w-]{1,60}(?:\.[\w-]{1,60}){1,6}/\S*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class FailedLine:
    """A rejected line as written, and a sentence that says what is wrong with it."""

    text: str
    why: str


def answer_to(reading: Reading, tag: str, sha: str, identity: BotIdentity, now: datetime) -> ComposedMail:
    """Return the reply to a mail whose commands failed.

    Only the mail's ids and subject are copied into headers, and only where that is safe.
    """
    mail = reading.mail
    answered = mail.message_id if is_message_id(mail.message_id) else ""
    lists = (Recipient(Address("", identity.list_address), "our own list"),) if identity.list_address else ()
    author = Recipient(replace(mail.author, name=_unlinked(mail.author.name, 80)), "sent the command")
    position = reply_position(answered, mail.references[-MOST_REFERENCES:])
    return ComposedMail(
        message_id=message_id(now, tag, identity, mail.message_id),
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(tag)),
        recipients=Recipients((author,), lists),  # its copy in our list's archive proves delivery
        subject=f"Re: {_unlinked(_bare(mail.subject), 200)}",
        date=now.replace(microsecond=0),
        body=_body(reading, sha, identity),
        report_tag=tag,
        in_reply_to=position.in_reply_to,
        references=position.references,
        submitted="auto-replied",
    )


def _unlinked(text: str, most: int) -> str:
    """Return a stranger's words as one line without links."""
    return one_line(_LINK.sub("[link]", text), most)


def _bare(subject: str) -> str:
    return subject[3:].lstrip() if subject[:3].lower() == "re:" else subject


def _body(reading: Reading, sha: str, identity: BotIdentity) -> str:
    lines = list(_failed(reading))
    text = render_to_string(
        "mail/answer.txt",
        {
            "author_name": _unlinked(reading.mail.author.name, 60),
            "bot": one_line(identity.name, 60),
            "which": "This line" if len(lines) == 1 else "These lines",
            "was": "was" if len(lines) == 1 else "were",
            "lines": lines,
            "help": identity.help("answering"),
            "page": identity.page(sha[:12]),
        },
    )
    kept = (line.rstrip() for line in text.splitlines())
    return "\n".join("-- " if line == "--" else line for line in kept) + "\n"


def _failed(reading: Reading) -> Iterator[FailedLine]:
    if reading.commands.too_many:
        yield FailedLine("(all commands)", f"More than {MAX_COMMANDS} commands in one mail: none was run.")
    own = reading.own_text.split("\n")
    for bad in reading.commands.bad[:MOST_LINES]:
        written = own[bad.line - 1] if bad.line <= len(own) else bad.text
        why = textwrap.fill(f"Line {bad.line}: {_unlinked(bad.why, 200)}.", WIDTH)
        yield FailedLine(_unlinked(written, 74), why)
