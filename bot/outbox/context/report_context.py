"""A report that people were told of, as its further mails need it: its thread, where it stands, what was measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.compose.follow_ups.fix_mail import FixData
from bot.compose.follow_ups.thread_mail import ThreadData
from bot.compose.report.report_data import FindingData
from bot.compose.threading import patch_mail
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.patches import bare_title
from bot.outbox.context.patch_mail import above
from bot.outbox.context.report_loader import headline_of, values_of
from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Role, State, Verdict
from tracker.domain.report_state.fold import effective_events, fold
from tracker.domain.report_state.state import ReportState
from tracker.models import Commit, Message, OutgoingMail, Report

# Where nobody has said a word, or the lab is asked for one; who has answered is not nagged.
_WAITS = frozenset({State.NO_RESPONSE, State.DISPUTED, State.NEEDS_INFO})


@dataclass(frozen=True, slots=True)
class ReportContext:
    """`sent`: the mail that told people; `events`: those that stand."""

    report: Report
    thread: ThreadData
    sent: OutgoingMail
    standing: ReportState
    events: tuple[EventData, ...]

    @property
    def headline(self) -> FindingData:
        """What leads the report; LookupError where the lab has come to doubt it."""
        return values_of([headline_of(self.report)])[0]

    def words_of(self, event: EventData) -> str:
        """What somebody wrote to an event: the argument of a command, or the sentence that it relied on."""
        quote = self.report.events.filter(key=event.key).values_list("quote", flat=True).first()
        return event.remark or quote or ""

    def below_patch(self, event: EventData, title: str) -> ThreadData:
        """The thread of the very patch that was measured, so that tools find a tag there; else that of the report.

        Known by the commit's own link, or as the only posting of its title: of several versions nobody can tell which.
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
        return replace(self.thread, message_id=message_id, references=above(message_id), subject=subject)


def report_context(sent: OutgoingMail) -> ReportContext:
    """The case of a report by the mail that told people of it."""
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
        ),
        sent=sent,
        standing=fold(Verdict(report.verdict), events),
        events=tuple(effective_events(events)),
    )


def fix_of(event: EventData, measured: FindingData) -> FixData:
    """A fix that was measured, with its author as far as we know him."""
    commit = Commit.objects.filter(sha=event.commit).first()
    author = Address(commit.author_name, commit.author_email) if commit else Address("", "")
    return FixData(event.commit, bare_title(event.title or (commit.title if commit else "")), author, measured)


def waits_for_a_word(case: ReportContext, event: EventData) -> bool:
    """Whether "still there" may be told: a version, the latest that was measured, where somebody's word is missing."""
    later = [each for each in case.events if each.kind is EventKind.STILL_THERE and each.at > event.at]
    waits = case.standing.state in _WAITS and case.standing.reminders
    return waits and not later and versions.parse(event.tag) is not None


def is_ours_to_withdraw(case: ReportContext, event: EventData) -> bool:
    """Whether somebody of the lab decided that the report is wrong, and no mail of the lab in the thread says so."""
    decided = bool(event.said_by) and not (event.message_id and event.by is Role.REPORTER)
    return decided and case.standing.because == event.key
