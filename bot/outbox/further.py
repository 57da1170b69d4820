"""What people should hear after a report: more findings, still there, a fix measured, a withdrawal. Each once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import QuerySet

from bot.compose.fix_mail import FixTold, compose_fix
from bot.compose.follow_up_mail import compose_follow_up, matters
from bot.compose.further_mail import ThreadTold
from bot.compose.mail import Mail
from bot.compose.policy import Action, Decision
from bot.compose.recheck_mail import StillThere, compose_recheck
from bot.compose.told import FindingTold
from bot.compose.withdrawal_mail import compose_withdrawal
from bot.identity import Identity
from bot.outbox.circumstances import unwelcome
from bot.outbox.composing import PURPOSE
from bot.outbox.house import House
from bot.outbox.loading import findings_of, measured_again, values_of
from bot.outbox.patches import above
from bot.outbox.shelving import Desk
from bot.replies.addresses import Address
from bot.replies.mail import parse
from tracker import status, versions
from tracker.models import Commit, Event, Message, OutgoingMail, OutgoingState, Report
from tracker.models.event import NEWS
from tracker.status import OPEN, Happening, Role, Standing, State

APART = timedelta(days=7)  # between two follow-ups of one report
FRESH = timedelta(days=7)  # what was learned earlier is no news any more
AT_ONCE = 500
_FOLLOW_UP = "follow_up "
# Where nobody has said a word, or the lab was asked for one; who has answered is not nagged.
_WAITS = frozenset({State.NO_RESPONSE, State.DISPUTED, State.NEEDS_INFO})
log = logging.getLogger(__name__)


def compose_further(
    identity: Identity, now: datetime, *, approve_first: bool = True, house: House | None = None
) -> int:
    """Compose the further mails that are due. Returns how many. A report's own mail must have gone out before."""
    return _Further(identity, now, house or House(), Action.APPROVE if approve_first else Action.SEND).compose()


@dataclass(frozen=True, slots=True)
class _Case:
    """A report that was told, its thread, and where it stands."""

    report: Report
    thread: ThreadTold
    sent: OutgoingMail
    standing: Standing
    events: tuple[status.Event, ...]  # those that stand


class _Further:
    """One round."""

    def __init__(self, identity: Identity, now: datetime, house: House, action: Action) -> None:
        self.identity, self.now = identity, now
        self.desk = Desk(identity, house, now)
        self.decision = Decision(action)
        self.unwelcome = unwelcome()

    def compose(self) -> int:
        composed = 0
        for sent in self._with_more_findings():
            composed += self._tried(sent, self._follow_up)
        for sent, keys in self._with_news().items():
            composed += self._tried(sent, lambda case, keys=keys: self._news(case, keys))  # type: ignore[misc]
        return composed

    def _tried(self, sent: OutgoingMail, tell: Callable[[_Case], int]) -> int:
        """One odd report, not all of them."""
        try:
            return tell(_case(sent))
        except (ValueError, LookupError, UnicodeError) as error:
            log.error("%s: no further mail could be composed: %s", sent.report.culprit.sha10, error)
            return 0

    # --- more findings ---

    def _with_more_findings(self) -> Iterator[OutgoingMail]:
        """The mails that say less than we know since; which is looked at once."""
        rows = _sent().filter(stale=True).select_related("report__culprit")
        return rows.order_by("pk")[:AT_ONCE].iterator()

    def _follow_up(self, case: _Case) -> int:
        report = case.report
        mails = report.outgoing.filter(purpose__startswith=_FOLLOW_UP).exclude(state=OutgoingState.CANCELLED)
        last = mails.order_by("-newest_finding").first()
        if last and last.composed_at > self.now - APART:
            return 0  # and it is looked at again later
        told = max(case.sent.newest_finding, last.newest_finding if last else 0)
        found = findings_of(report, after=told)
        new = values_of(found)
        worth = bool(new) and case.standing.state in OPEN and matters(new, _headline(report))
        done = False
        if worth:
            newest = max(each.pk for each in found)
            parent = next((each.parent for each in found if each.parent), None)
            purpose = f"{_FOLLOW_UP}{newest}"
            names = (parent.sha, parent.title) if parent else ("", "")
            mail = compose_follow_up(case.thread, new, names, purpose, self.identity, self.now, self.unwelcome)
            done = self._shelve(case, mail, purpose, newest)
        OutgoingMail.objects.filter(pk=case.sent.pk).update(stale=False)
        return int(done)

    # --- events ---

    def _with_news(self) -> Mapping[OutgoingMail, list[str]]:
        """The mails of reports to which something happened lately that nobody was told of, with the keys of that."""
        lately = Event.objects.filter(kind__in=NEWS, recorded_at__gt=self.now - FRESH)
        keys: dict[int, list[str]] = {}
        for report, key in lately.order_by("pk").values_list("report", "key")[: AT_ONCE * 10]:
            keys.setdefault(report, []).append(key)
        sent = _sent().filter(report__in=keys).select_related("report__culprit")
        return {row: keys[row.report_id] for row in sent.order_by("pk")[:AT_ONCE]}

    def _news(self, case: _Case, keys: list[str]) -> int:
        told = set(case.report.outgoing.values_list("purpose", flat=True))
        happened = [event for event in case.events if event.key in keys]
        composed = 0
        for event in happened:
            purpose = _purpose(event)
            if purpose not in told and (mail := self._mail(case, event, purpose)):
                composed += self._shelve(case, mail, purpose)
                told.add(purpose)
        return composed

    def _mail(self, case: _Case, event: status.Event, purpose: str) -> Mail | None:
        if event.at <= (case.sent.sent_at or self.now):
            return None  # the report itself told of it, or could have
        more = (purpose, self.identity, self.now, self.unwelcome)
        match event.kind:
            case Happening.STILL_THERE if _worth_a_recheck(case, event):
                again = measured_again(case.report, event.result)
                return compose_recheck(
                    case.thread, StillThere(event.tag, event.commit, again), _headline(case.report), *more
                )
            case Happening.FIX_CONFIRMED | Happening.FIX_WITHOUT_EFFECT if fix := _fix(case, event):
                return compose_fix(_below_patch(case), fix, _headline(case.report), *more)
            case Happening.INVALID if case.standing.because == event.key and _is_ours_to_tell(event):
                return compose_withdrawal(case.thread, event.remark, *more)
        return None

    def _shelve(self, case: _Case, mail: Mail, purpose: str, newest: int = 0) -> bool:
        verdict = self.desk.judge(mail, self.decision)
        return self.desk.shelve(case.report, mail, purpose, verdict, newest)


def _sent() -> QuerySet[OutgoingMail]:
    """The mails by which people were told of reports."""
    return OutgoingMail.objects.filter(purpose=PURPOSE, state=OutgoingState.SENT)


def _case(sent: OutgoingMail) -> _Case:
    report = sent.report
    mail = parse(bytes(sent.raw))
    events = [event.value() for event in report.events.all()]
    thread = ThreadTold(
        tag=report.tag,
        sha=report.culprit.sha,
        title=report.culprit.title,
        verdict=report.verdict,
        message_id=sent.message_id,
        references=mail.references,
        subject=sent.subject,
        to=mail.to,
        cc=mail.cc,
    )
    standing = status.fold(status.Verdict(report.verdict), events)
    return _Case(report, thread, sent, standing, tuple(status.standing_events(events)))


def _headline(report: Report) -> FindingTold:
    return values_of(findings_of(report)[:1])[0]


def _purpose(event: status.Event) -> str:
    """What a mail about an event tells: a version once, whoever measured there."""
    if event.kind is Happening.STILL_THERE:
        return f"{event.kind} {event.tag or event.commit}"
    return f"{event.kind} {event.key}"


def _worth_a_recheck(case: _Case, event: status.Event) -> bool:
    """A release or a candidate of it, the latest that was measured, where somebody's word is waited for."""
    later = [each for each in case.events if each.kind is Happening.STILL_THERE and each.at > event.at]
    waits = case.standing.state in _WAITS and case.standing.reminders
    return waits and not later and versions.parse(event.tag) is not None


def _fix(case: _Case, event: status.Event) -> FixTold | None:
    """The fix that was measured, with its numbers in the headline's place; None where a person said so in mail."""
    measured = measured_again(case.report, event.result)
    if measured is None or not event.commit:
        return None
    commit = Commit.objects.filter(sha=event.commit).first()
    author = Address(commit.author_name, commit.author_email) if commit else Address("", "")
    return FixTold(event.commit, event.title or (commit.title if commit else ""), author, measured)


def _below_patch(case: _Case) -> ThreadTold:
    """An answer to the patch where its mail is known, so that tools find the tag there; else in the report's thread."""
    message_id = case.standing.fix.message_id if case.standing.fix else ""
    mail = Message.objects.filter(message_id=message_id).first() if message_id else None
    if mail is None:
        return case.thread
    subject = mail.subject.removeprefix("Re: ")
    return replace(case.thread, message_id=message_id, references=above(message_id), subject=subject)


def _is_ours_to_tell(event: status.Event) -> bool:
    """Whether somebody of the lab decided so, and no mail of the lab in the thread says it already."""
    return bool(event.said_by) and not (event.message_id and event.by is Role.REPORTER)
