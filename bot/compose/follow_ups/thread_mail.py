"""What all further mails about a report share: sent in its thread, to its recipients. Each kind has its own module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.conventions import DEFAULT
from bot.compose.mail import ComposedMail
from bot.compose.message_id import message_id
from bot.compose.recipients import Recipient, Recipients, exclusion_reason
from bot.compose.report.report_mail import commit_line, finished
from bot.compose.threading import reply_position
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line


@dataclass(frozen=True, slots=True)
class ThreadData:
    """A report whose mail was sent: its culprit, that mail, and how many people a mail goes to at most."""

    tag: str
    sha: str
    title: str
    verdict: str
    message_id: str
    references: tuple[str, ...]
    subject: str
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    most_people: int = DEFAULT.most_people


def in_thread(
    thread: ThreadData,
    purpose: str,
    template: str,
    context: Mapping[str, object],
    identity: BotIdentity,
    now: datetime,
    excluded: Mapping[str, str],
    first: Recipient | None = None,
    trailer: str = "",
) -> ComposedMail:
    """Return a mail in the report's thread.

    `purpose` identifies its content and determines its Message-ID; `first`: whom to put in To, where possible;
    `trailer`: a trailer line for tools to collect.
    """
    own = (commit_line(thread.sha, thread.title), trailer)
    position = reply_position(thread.message_id, thread.references)
    common = {
        "bot": one_line(identity.name, 60),
        "sha": thread.sha,
        "commit": commit_line(thread.sha, thread.title),
        "title": one_line(thread.title, 200),
        "verdict": thread.verdict,
        "prefix": identity.prefix,
        "page": identity.page(thread.sha[:12]),
        "help": identity.help("answering"),
    }
    return ComposedMail(
        message_id=message_id(now, thread.tag, identity, purpose),
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(thread.tag)),
        recipients=_recipients(thread, identity, excluded, first),
        subject=f"Re: {thread.subject}",
        date=now.replace(microsecond=0),
        body=finished(render_to_string(f"mail/{template}.txt", {**common, **context}), own),
        report_tag=thread.tag,
        in_reply_to=position.in_reply_to,
        references=position.references,
    )


def _recipients(
    thread: ThreadData, identity: BotIdentity, excluded: Mapping[str, str], first: Recipient | None
) -> Recipients:
    """Return the report's recipients and `first`, without those who opted out or can't be reached.

    A person with several addresses gets one mail; if `first` is one too many, the last person of Cc is left out.
    """
    recipients = [Recipient(each, "got the report") for each in (*thread.to, *thread.cc)]
    if first:
        recipients.insert(0, first)
    kept: dict[str, Recipient] = {}
    left_out: dict[str, Recipient] = {}
    persons: set[str] = set()
    for each in recipients:
        aliases = identity.aliases.of(each.email)
        if aliases & persons:
            continue
        if why := exclusion_reason(each.email, identity, excluded):
            left_out.setdefault(each.email, replace(each, why=why))
        elif len(kept) >= thread.most_people:
            left_out.setdefault(each.email, replace(each, why=f"more than {thread.most_people} recipients"))
        else:
            kept.setdefault(each.email, each)
            persons |= aliases
    addressed = [first.email] if first and first.email in kept else [each.email for each in thread.to]
    to = tuple(each for each in kept.values() if each.email in addressed) or tuple(kept.values())[:1]
    return Recipients(to, tuple(each for each in kept.values() if each not in to), tuple(left_out.values()))
