"""A report whose mail was sent, as input for its further mails: thread, report state and measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Coalesce

from bot.compose.conventions import Conventions
from bot.compose.follow_ups.fix_mail import FixData
from bot.compose.follow_ups.thread_mail import ThreadData
from bot.compose.policy.reminding import REMINDERS
from bot.compose.report.report_data import FindingData
from bot.compose.threading import patch_mail
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.patches import bare_title
from bot.outbox.context.patch_mail import ancestors
from bot.outbox.context.report_loader import headline_of, values_of
from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Role, State, Verdict
from tracker.domain.report_state.fold import effective_events, fold
from tracker.domain.report_state.state import ReportState
from tracker.models import Commit, Message, OutgoingMail, OutgoingState, Reminder, Report

# No reply yet, or a question to the lab is open. An author who has replied gets no reminders.
MOST_REMINDERS = 2  # in the life of a report, "still there" in a later version among them
_WAITS = frozenset({State.NO_RESPONSE, State.DISPUTED, State.NEEDS_INFO})


@dataclass(frozen=True, slots=True)
class ReportContext:
    """`sent`: the report's mail; `events`: those in force, not reversed."""

    report: Report
    thread: ThreadData
    sent: OutgoingMail
    report_state: ReportState
    events: tuple[EventData, ...]

    @property
    def headline(self) -> FindingData:
        """The headline finding; LookupError if it is held by now."""
        return values_of([headline_of(self.report)])[0]

    def text_of(self, event: EventData) -> str:
        """Return the text behind an event: the argument of a command, or the sentence that it relied on."""
        quote = self.report.events.filter(key=event.key).values_list("quote", flat=True).first()
        return event.remark or quote or ""

    def patch_thread(self, event: EventData, title: str) -> ThreadData:
        """Return the thread of the measured patch, so that tools collect the tag there; else the report's thread.

        The patch is found by the commit's link, or as the only posting with its title; with several versions it is
        ambiguous.
        """
        commit = Commit.objects.filter(sha=event.commit).first()
        linked = patch_mail([(tag, value) for tag, value in commit.trailers]) if commit else ""
        message_id = (commit.patch_message_id if commit else "") or linked
        if not message_id:
            posted = [
                each.message_id
                for each in self.events
                if each.kind is EventKind.FIX_PROPOSED and each.message_id and bare_title(each.title) == title
            ]
            message_id = posted[0] if len(set(posted)) == 1 else ""
        mail = Message.objects.filter(message_id=message_id).first() if message_id else None
        if mail is None:
            return self.thread
        subject = mail.subject.removeprefix("Re: ")
        return replace(self.thread, message_id=message_id, references=ancestors(message_id), subject=subject)


def report_context(sent: OutgoingMail, conventions: Conventions) -> ReportContext:
    """Return the context of a report, from its sent mail."""
    report = sent.about
    mail = parse(bytes(sent.raw))
    events = [event.value() for event in report.events.all()]
    return ReportContext(
        report=report,
        thread=ThreadData(
            tag=report.tag,
            sha=report.culprit.sha,
            title=report.culprit.title,
            verdict=report.verdict,
            message_id=sent.message_id,
            references=mail.references,
            subject=sent.subject,
            to=mail.to,
            cc=mail.cc,
            most_people=conventions.most_people,
        ),
        sent=sent,
        report_state=fold(Verdict(report.verdict), events),
        events=tuple(effective_events(events)),
    )


def fix_of(event: EventData, measured: FindingData) -> FixData:
    """Return a measured fix, with its author if known."""
    commit = Commit.objects.filter(sha=event.commit).first()
    author = Address(commit.author_name, commit.author_email) if commit else Address("", "")
    return FixData(event.commit, bare_title(event.title or (commit.title if commit else "")), author, measured)


def needs_reminder(context: ReportContext, event: EventData, now: datetime) -> bool:
    """Return whether to mail "still there": the event is the latest measured version, a reply is missing, and nobody
    was reminded lately.
    """
    later = [
        each for each in context.events if each.kind is EventKind.STILL_THERE and each.occurred_at > event.occurred_at
    ]
    waits = context.report_state.state in _WAITS and context.report_state.reminders
    if not waits or later or versions.parse(event.tag) is None:
        return False
    return _reminders(context, event) < MOST_REMINDERS and not _reminded_lately(context, now)


def _reminders(context: ReportContext, event: EventData) -> int:
    """Return how many mails the report's people got, or will get, unasked after the report, but for this event."""
    again = context.report.outgoing.filter(purpose__startswith=f"{EventKind.STILL_THERE} ")
    again = again.exclude(purpose=f"{EventKind.STILL_THERE} {event.tag}").exclude(state=OutgoingState.CANCELLED)
    return again.count() + context.report.reminders.count()


def _reminded_lately(context: ReportContext, now: datetime) -> bool:
    """Return whether a reminder is about this report, or went to its first recipient, not long ago."""
    to = [each.email for each in context.thread.to]
    rows = Reminder.objects.annotate(at=Coalesce("mail__sent_at", "composed_at"))
    about = Q(report=context.report, at__gt=now - REMINDERS.apart)
    return rows.filter(about | Q(person__in=to, at__gt=now - REMINDERS.per_person)).exists()


def needs_withdrawal(context: ReportContext, event: EventData) -> bool:
    """Return whether the lab decided that the report is wrong, and no mail from the lab in the thread says so yet."""
    decided = bool(event.actor) and not (event.message_id and event.role is Role.REPORTER)
    return decided and context.report_state.decided_by == event.key
