"""Answers to one person, in the thread: which commands failed, and why; and that a report of theirs is tracked.

Of failed commands there is at most one answer per mail, and one per hour, person and report. Only people get one, and
only for mail of the last three days, since archives go back decades. The writer must be proven, or have got our mail
about the report, unless the trust policy is `open`. Lists, robots and addresses like no-reply get none, nor does mail
marked as bulk (RFC 3834 section 2). Daily limits, per report and in all, bound abuse, since senders can be forged.

A stranger's words are quoted without their links, 200 characters of them at most: nobody gets us to pass on more. Only
the ids and the subject of the mail are copied into headers, and only where that is safe.

Whoever reported a regression is told once a thread where it is tracked, and of the two commands of use: only if the
operator names the list it was sent to (PERFWORK_ANSWER_REPORTERS), and the writer is proven, wrote in the last three
days, and wants our mail.
"""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.template.loader import render_to_string

from bot.compose.conventions import message_id, reply_position
from bot.compose.mail import ComposedMail, Recipient, Recipients, mail_of, to_bytes
from bot.mail.message import is_message_id, one_line
from bot.mail.settings import BotSettings
from bot.outbox.drafts import excluded_addresses
from bot.replies import gate
from bot.replies.commands import MAX_COMMANDS, Commands, Word, refused
from bot.replies.reading import Reading
from tracker.domain.events import OPEN
from tracker.models import OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import mail_transitions
from tracker.services.accounts import is_of_a_person
from tracker.services.mail_transitions import why_careful

# --- What it says of commands ---

WIDTH = 76
MOST_LINES = 10
MOST_QUOTED = 200  # characters of the mail
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


def answer_to(reading: Reading, tag: str, sha: str, settings: BotSettings, now: datetime) -> ComposedMail:
    """Return the reply to a mail whose commands failed."""
    mail = reading.mail
    author = Recipient(replace(mail.author, name=_unlinked(mail.author.name, 80)), "sent the command")
    subject = mail.subject[3:].lstrip() if mail.subject[:3].lower() == "re:" else mail.subject
    answered = mail.message_id if is_message_id(mail.message_id) else ""
    reply = mail_of(
        message_id(now, tag, settings, mail.message_id),
        tag,
        Recipients((author,), ()),
        f"Re: {_unlinked(subject, 200)}",
        _body(reading, sha, settings),
        settings,
        now,
        reply_position(answered, mail.references[-MOST_REFERENCES:]),
    )
    return replace(reply, submitted="auto-replied")


def _unlinked(text: str, most: int) -> str:
    """Return a stranger's words as one line without links."""
    return one_line(_LINK.sub("[link]", text), most)


def _body(reading: Reading, sha: str, settings: BotSettings) -> str:
    lines = []
    if reading.commands.too_many:
        lines.append(FailedLine("(all commands)", f"More than {MAX_COMMANDS} commands in one mail: none was run."))
    own, left = reading.own_text.split("\n"), MOST_QUOTED
    for bad in reading.commands.bad[:MOST_LINES]:
        written = _unlinked(own[bad.line - 1] if bad.line <= len(own) else bad.text, min(74, left))
        left -= len(written)
        if not written:
            break
        why = textwrap.fill(f"Line {bad.line}: {_unlinked(bad.why, 100)}.", WIDTH)
        lines.append(FailedLine(written, why))
    context = {
        "author_name": _unlinked(reading.mail.author.name, 60),
        "bot": one_line(settings.name, 60),
        "which": "This line" if len(lines) == 1 else "These lines",
        "was": "was" if len(lines) == 1 else "were",
        "lines": lines,
        "help": settings.help,
        "page": settings.page(sha[:12]),
    }
    return _rendered("mail/answer.txt", context)


def _rendered(template: str, context: Mapping[str, object]) -> str:
    lines = (line.rstrip() for line in render_to_string(template, context).splitlines())
    return "\n".join("-- " if line == "--" else line for line in lines) + "\n"


# --- When it is due ---

APART = timedelta(hours=1)
FRESH = timedelta(days=3)  # older mail gets no reply; archives go back decades
MOST_A_DAY = 10  # per report
MOST_A_DAY_IN_ALL = 100
_NOBODY = re.compile(r"[^@]*(?:-owner|-request|-bounces|-help|mailman|majordomo|no-?reply)@", re.I)


def answer(reading: Reading, about: gate.About, report: Report, settings: BotSettings, now: datetime) -> bool:
    """Compose the reply to a mail into the outbox; return False if it gets none.

    `about`: where what its writer signed leads.
    """
    reading = replace(reading, commands=_taken_by(report, reading.commands, settings))
    if not _deserved(reading, about, report, settings, now):
        return False
    author = reading.mail.author.email
    purpose = f"{Purpose.ANSWER}{author} "
    if OutgoingMail.objects.filter(report=report, purpose__startswith=purpose, composed_at__gt=now - APART).exists():
        return False
    lately = _of_one_day(now)  # daily limits bound abuse, since senders can be forged
    if lately.filter(report=report).count() >= MOST_A_DAY or lately.count() >= MOST_A_DAY_IN_ALL:
        return False
    mail = answer_to(reading, report.tag, report.culprit.sha, settings, now)
    return _queue(mail, report, purpose + reading.mail.message_id, settings, now)


def _of_one_day(now: datetime) -> QuerySet[OutgoingMail]:
    return OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER, composed_at__gt=now - timedelta(days=1))


def _queue(mail: ComposedMail, report: Report, purpose: str, settings: BotSettings, now: datetime) -> bool:
    """Put an answer to one person into the outbox; return False if its purpose was served already."""
    careful = why_careful(now)
    try:
        with transaction.atomic():
            row = OutgoingMail.objects.create(
                message_id=mail.message_id,
                report=report,
                purpose=purpose,
                raw=to_bytes(mail),
                sender=settings.return_path(report.tag, mail.message_id),
                recipients=list(mail.envelope),
                lists=[],
                subject=mail.subject,
                composed_at=now,
                state=OutgoingState.HELD if careful else OutgoingState.COMPOSED,
                reason=careful,
            )
            mail_transitions.record_created(row, "answering")
    except IntegrityError:
        return False  # already answered
    return True


_OPENS = frozenset({Word.REOPEN, Word.UNFIX, Word.UNDUP})


def _taken_by(report: Report, commands: Commands, settings: BotSettings) -> Commands:
    """Return the commands with those refused that a report does not take: the lab tests for open ones only."""
    if report.state in OPEN or any(command.word in _OPENS for command in commands.good):
        return commands
    why = f'the report is closed, so nothing is tested for it; "{settings.prefix} reopen" opens it'
    return refused(commands, why, (Word.TEST,))


def _deserved(reading: Reading, about: gate.About, report: Report, settings: BotSettings, now: datetime) -> bool:
    """Return whether it is a recent mail from a person about one of our reports. For most mail no query is made."""
    mail = reading.mail
    if not (reading.may_get_error_reply and mail.message_id):
        return False
    if mail.mark("precedence").lower() in ("bulk", "list", "junk"):  # RFC 3834 section 2
        return False
    # Whoever it really is from: an address that got no mail of ours did not ask us for anything.
    standing = gate.Standing(reading.trust, about=about, has_got_mail=_has_got_mail(mail.author.email, report))
    if not gate.permitted(gate.Caused.ANSWER, standing, settings.trust_policy):
        return False
    author = mail.author.email.lower()
    others = {settings.list_address, *settings.lists, *settings.robots}
    fresh = mail.date is not None and now - FRESH < mail.date
    reachable = is_of_a_person(author) and author not in others and not _NOBODY.match(author)
    if not (fresh and reachable):
        return False
    return report.tag in reading.tags or report.outgoing.filter(purpose=Purpose.REPORT).exists()


def _has_got_mail(address: str, report: Report) -> bool:
    """Return whether our mail about the report went to a person's address: then one more in its thread is not news to
    them. A list gets none, whoever writes in its name.
    """
    sent = report.outgoing.filter(state=OutgoingState.SENT).values_list("recipients", "lists")
    people = ({to.lower() for to in recipients} - {to.lower() for to in lists} for recipients, lists in sent)
    return any(address.lower() in addresses for addresses in people)


def approve_answers(now: datetime) -> int:
    """Approve all waiting replies, for installations without manual approval. Return how many."""
    waiting = OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER, state=OutgoingState.COMPOSED)
    return len(mail_transitions.transition(waiting, OutgoingState.APPROVED, "answering", now))


# --- A person's report is tracked ---

MOST_TRACKED_A_DAY = 20
_TRACKED = "tracked "  # in the purpose, after the address


def answer_reporter(reading: Reading, report: Report, settings: BotSettings, now: datetime) -> bool:
    """Compose the mail into the outbox; return False if the writer gets none."""
    mail, author = reading.mail, reading.mail.author.email
    on_a_list = bool({address.email for address in mail.recipients} & settings.answer_on)
    fresh = mail.date is not None and now - FRESH < mail.date
    proven = reading.trust.proven and is_of_a_person(author.lower()) and is_message_id(mail.message_id)
    if not (on_a_list and fresh and proven) or author in excluded_addresses(settings.aliases):
        return False
    if _of_one_day(now).filter(purpose__contains=f" {_TRACKED}").count() >= MOST_TRACKED_A_DAY:
        return False
    purpose = f"{Purpose.ANSWER}{author} {_TRACKED}{mail.message_id}"
    return _queue(_tracked(reading, report, settings, now), report, purpose, settings, now)


def _tracked(reading: Reading, report: Report, settings: BotSettings, now: datetime) -> ComposedMail:
    mail = reading.mail
    name = one_line(mail.author.name, 80)
    context = {
        "author_name": one_line(name, 60),
        "bot": one_line(settings.name, 60),
        "prefix": settings.prefix,
        "help": settings.help,
        "page": settings.page(report.culprit.sha),
    }
    composed = mail_of(
        message_id(now, report.tag, settings, f"{_TRACKED}{mail.message_id}"),
        report.tag,
        Recipients((Recipient(replace(mail.author, name=name), "reported it"),), ()),
        f"Re: {one_line(mail.subject, 200)}",
        _rendered("mail/reporter_answer.txt", context),
        settings,
        now,
        reply_position(mail.message_id, ()),
    )
    return replace(composed, submitted="auto-replied")
