"""The round of follow-ups: which sent reports have news, and the mails that these make, each once.

A report's own mail must have been sent before. News is new findings, mailed at most every seven days, and events of
the last seven days: still there, a measured fix (fix.py), a withdrawal, an action that a person chose to announce. The
purpose makes a mail unique: one per version, one per fix, one withdrawal.

First, unsent mails that a new event has outdated are cancelled; those still due are then composed again, and what a
person decided stays. A withdrawal is never held; once a fix is posted, the policy may hold only more findings and
"still there". Each report is composed under a row lock, and an error with one blocks no other.
"""

import logging
import textwrap
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from bot.compose.conventions import WIDTH
from bot.compose.mail import ComposedMail
from bot.compose.policy import Action, PolicyDecision, ReminderPolicy, decide
from bot.compose.report_data import FindingData, listed, worst
from bot.compose.report_data import sides as both_sides
from bot.compose.report_mail import sides, tables
from bot.mail.message import one_line
from bot.mail.settings import Aliases, BotSettings
from bot.notifications.fix import compose_fix, compose_tested, fix_of
from bot.notifications.reminder import reminded_at
from bot.notifications.report import PatchMails, findings_of, measured_again, report_data, values_of, withheld
from bot.notifications.thread import ReportContext, ThreadData, ThreadMails, report_context
from bot.outbox.drafts import COMPOSER, ComposeConfig, OutboxWriter, basic_context, excluded_addresses
from tracker.domain import versions
from tracker.domain.events import OPEN, EventData, EventKind, Grade, Role, State
from tracker.domain.text import counted
from tracker.models import Event, OutgoingMail, OutgoingState, Purpose, Reminder, Report
from tracker.models.mail import WAITING
from tracker.models.reports import NEWS
from tracker.services import event_log, mail_transitions
from tracker.services.database import is_interruption

log = logging.getLogger(__name__)

APART = timedelta(days=7)  # between two follow-ups of one report
FRESH = timedelta(days=7)  # older events are not mailed
AT_ONCE = 500
STATUS_CHANGE = "said "  # prefix of the purpose of a mail about a person's action
DEFAULT_CONFIG = ComposeConfig()


def compose_follow_ups(
    settings: BotSettings, now: datetime, *, approve_first: bool = True, config: ComposeConfig = DEFAULT_CONFIG
) -> int:
    """Compose the further mails that are due. Return how many. A report's own mail must have been sent before."""
    return _FollowUpRound(settings, now, config, Action.APPROVE if approve_first else Action.SEND).compose()


class _FollowUpRound:
    """One round of composing."""

    def __init__(self, settings: BotSettings, now: datetime, config: ComposeConfig, otherwise: Action) -> None:
        self.settings, self.now, self.config, self.otherwise = settings, now, config, otherwise
        self.writer = OutboxWriter(settings, config, now)
        self.mails = ThreadMails(settings, now, excluded_addresses(settings.aliases, config.policy.never))

    def compose(self) -> int:
        self.cancel_outdated()
        # Reports with newer findings, except for those followed up within APART
        recent = OutgoingMail.objects.filter(
            report=OuterRef("report"), purpose__startswith=Purpose.FOLLOW_UP, composed_at__gt=self.now - APART
        ).exclude(state=OutgoingState.CANCELLED)
        rows = _sent().filter(stale=True).exclude(Exists(recent)).select_related("report__culprit")
        composed = 0
        for sent in list(rows.order_by("pk")[:AT_ONCE]):
            composed += self._try_compose(sent, self._follow_up, stale=False)
        for sent in self._with_news():
            composed += self._try_compose(sent, self._news, news_until=self.now - event_log.LATE)
        return composed

    def _try_compose(self, sent: OutgoingMail, compose: Callable[[ReportContext], int], **checked: object) -> int:
        """Compose for one report under a row lock, and mark it as checked. An error blocks no other report."""
        sent_row = OutgoingMail.objects.filter(pk=sent.pk)
        try:
            with transaction.atomic():
                Report.objects.select_for_update().filter(pk=sent.about.pk).first()
                sent_row.update(**checked)  # first, so that a concurrent event marks it again
                return compose(report_context(sent, self.config.conventions))
        except Exception as error:  # bad data from a lab, a tree or a mail
            if is_interruption(error):  # the next round tries again
                log.error("%s: composing a further mail failed: %s", sent.about.culprit.sha10, error)
                return 0
            log.exception("%s: composing a further mail failed", sent.about.culprit.sha10)
            sent_row.update(**checked)
        return 0

    # --- Outdated mails ---

    def cancel_outdated(self) -> None:
        """Cancel unsent mails after a new event or an expired hold. Those still due are then composed again; what a
        person decided stays.
        """
        unsent = OutgoingMail.objects.filter(state__in=WAITING).exclude(purpose=Purpose.REPORT)
        unsent = unsent.exclude(purpose__startswith=Purpose.ANSWER).exclude(report=None)
        unsent = unsent.exclude(purpose__startswith=Purpose.REMINDER)  # reminder.py checks them
        unsent.filter(Q(decided_by_person=True) | Q(attempts__gt=0)).update(stale=False)
        over = Q(state=OutgoingState.HELD, not_before__lte=self.now)
        rows = unsent.filter(Q(stale=True) | over, decided_by_person=False, attempts=0).select_related("report")
        for row in rows.order_by("pk")[:AT_ONCE]:
            reason = f"no longer due: {row.about.status}"[:1000]
            with transaction.atomic():
                waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=WAITING, decided_by_person=False)
                columns = {"reason": reason, "stale": False, "not_before": None}
                if mail_transitions.transition(waiting, OutgoingState.CANCELLED, COMPOSER, self.now, reason, **columns):
                    _sent().filter(report=row.report_id).update(stale=True, news_until=None)

    # --- More findings ---

    def _follow_up(self, context: ReportContext) -> int:
        report = context.report
        mails = report.outgoing.filter(Q(purpose=Purpose.REPORT) | Q(purpose__startswith=Purpose.FOLLOW_UP))
        last = mails.exclude(state=OutgoingState.CANCELLED).order_by("-newest_finding").first() or context.sent
        if last.purpose != Purpose.REPORT and last.composed_at > self.now - APART:
            return 0
        findings = findings_of(report, after=last.newest_finding, freed=last.withheld)
        new = values_of(findings)
        if not new or context.report_state.state not in OPEN or not matters(new, context.headline):
            return 0
        keys = sorted(finding.pk for finding in findings)
        newest = max(last.newest_finding, keys[-1])
        parent = next((finding.parent for finding in findings if finding.parent), None)
        names = (parent.sha, parent.title) if parent else ("", "")
        purpose = f"{Purpose.FOLLOW_UP}{keys[0]}-{keys[-1]}"
        mail = compose_follow_up(context.thread, new, names, purpose, self.mails)
        foreign = [
            text
            for finding in new
            for text in (finding.metric, finding.suite, finding.machine, *finding.params.values())
        ]
        return self._insert(context, mail, purpose, self._decision(context), [*names, *foreign], newest)

    # --- Events ---

    def _with_news(self) -> list[OutgoingMail]:
        """Return the mails of reports with events since the last check, the least recently checked first."""
        mail = "report__outgoing"
        news = Event.objects.filter(
            Q(**{f"{mail}__news_until": None}) | Q(**{f"{mail}__news_until__lt": F("recorded_at")}),
            recorded_at__gt=self.now - FRESH,
            **{f"{mail}__purpose": Purpose.REPORT, f"{mail}__state": OutgoingState.SENT},
        )
        oldest = news.order_by(F(f"{mail}__news_until").asc(nulls_first=True), "recorded_at")
        pks = [
            pk
            for kinds in (Q(kind__in=NEWS), Q(notify_thread=True))  # two queries: each has its own index
            for pk in oldest.filter(kinds).values_list("report", flat=True)[: AT_ONCE * 4]
        ]
        reports = list(dict.fromkeys(pks))[:AT_ONCE]
        sent = _sent().filter(report__in=reports).select_related("report__culprit")
        return sorted(sent, key=lambda row: reports.index(row.about.pk))

    def _news(self, context: ReportContext) -> int:
        # Cancelled by us; composed again if still due
        cancelled = Q(state=OutgoingState.CANCELLED, decided_by_person=False)
        purposes = set(context.report.outgoing.exclude(cancelled).values_list("purpose", flat=True))
        since = self.now - FRESH
        recent = context.report.events.filter(recorded_at__gt=since)
        fresh = set(recent.filter(kind__in=NEWS).values_list("key", flat=True))
        notify_thread = set(recent.filter(notify_thread=True).values_list("key", flat=True))
        composed = 0
        for event in context.events:
            purpose = _purpose(event)
            if event.key in fresh and purpose not in purposes and self._deserves(context, event):
                if self._compose_about(context, event, purpose):
                    composed += 1
                    purposes.add(purpose)
            elif (
                event.key in notify_thread
                and f"{STATUS_CHANGE}{event.key}" not in purposes
                # and no withdrawal mail covers it
                and (event.kind is not EventKind.INVALID or not self._deserves(context, event))
            ):
                composed += self._compose_about(context, event, f"{STATUS_CHANGE}{event.key}")
        return composed

    def _deserves(self, context: ReportContext, event: EventData) -> bool:
        """Return whether the report's recipients should get a mail about an event."""
        covered = context.sent.sent_at and event.occurred_at <= context.sent.sent_at
        if covered and event.kind is not EventKind.INVALID:
            return False  # the report itself covered it, or could have; what was invalid then must not have left
        match event.kind:
            case EventKind.STILL_THERE:
                return still_there_is_due(context, event, self.settings.aliases, self.now)
            case EventKind.FIX_CONFIRMED | EventKind.FIX_WITHOUT_EFFECT:
                return bool(event.result)
            case EventKind.INVALID:
                return withdrawal_is_due(context, event)
        return False

    def _compose_about(self, context: ReportContext, event: EventData, purpose: str) -> int:
        """Compose one mail about one event; an error does not block the report's other mails."""
        try:
            with transaction.atomic():
                mail = self._mail(context, event, purpose)
                if mail is None:
                    return 0
                foreign = [event.title, event.tag, event.remark, context.text_of(event), mail.subject]
                return self._insert(context, mail, purpose, self._decision(context, event.kind), foreign)
        except Exception as error:
            if is_interruption(error):
                raise
            log.exception("%s: composing the mail about %s failed", context.report.culprit.sha10, event.kind)
            return 0

    def _mail(self, context: ReportContext, event: EventData, purpose: str) -> ComposedMail | None:
        """Return the mail about an event; None if its numbers give no reason for one."""
        if answer := compose_tested(context, event, purpose, self.mails):
            return answer
        if purpose.startswith(STATUS_CHANGE):
            return compose_status(context, event, purpose, self.mails)
        if event.kind is EventKind.INVALID:
            return compose_withdrawal(context.thread, context.text_of(event), purpose, self.mails)
        measured = measured_again(context.report, event.result, event.commit)
        if event.kind is EventKind.STILL_THERE:
            if measured and measured.verdict != context.report.verdict:
                return None  # not reproduced
            return compose_recheck(context, event, measured, purpose, self.mails)
        if measured is None or not event.commit:
            return None  # stated in a mail, or measured elsewhere
        fix = fix_of(event, measured)
        return compose_fix(context.patch_thread(event, fix.title), fix, context.headline, purpose, self.mails)

    def _decision(self, context: ReportContext, kind: EventKind | None = None) -> PolicyDecision:
        """Return the policy's decision: a withdrawal is never held, and a posted fix holds only what reminds of it."""
        if kind is EventKind.INVALID:
            return PolicyDecision(self.otherwise)
        reminds = kind in (None, EventKind.STILL_THERE)
        data = report_data(context.report, self.settings, ComposeConfig(), PatchMails())  # rules need no trees
        policy_context = basic_context(context.report, with_fix=reminds)
        decision = decide(data, self.config.policy, policy_context, self.now, self.otherwise)
        return decision if decision.action is Action.HOLD else PolicyDecision(self.otherwise)

    def _insert(
        self,
        context: ReportContext,
        mail: ComposedMail,
        purpose: str,
        decision: PolicyDecision,
        foreign: list[str],
        newest: int = 0,
    ) -> int:
        head = None if purpose == EventKind.INVALID else context.headline
        measured = [head.metric, head.suite, head.machine, head.unit] if head else []
        names = [context.thread.title, *measured, *foreign]
        start = self.writer.decide_start(mail, decision, foreign=names)
        held = withheld(context.report) if newest else ()
        return int(self.writer.insert(context.report, mail, purpose, start, newest, held))


def _sent() -> QuerySet[OutgoingMail]:
    """Return the sent mails of reports."""
    return OutgoingMail.objects.filter(purpose=Purpose.REPORT, state=OutgoingState.SENT)


def _purpose(event: EventData) -> str:
    """Return the purpose of a mail about an event: one per version, per fix, and one withdrawal."""
    if event.kind is EventKind.INVALID:
        return str(event.kind)
    return f"{event.kind} {(event.tag if event.kind is EventKind.STILL_THERE else '') or event.commit or event.result}"


# --- New findings ---

# They matter if one is clearly worse than what was reported.

LEAST_PCT = 5.0  # the smallest change that is worth a mail
_SHOWN = 5


def matters(new: Sequence[FindingData], headline: FindingData) -> bool:
    """Return whether new findings deserve a mail: one is worse by 5% or by half of the headline's change, whichever
    is more. Improvements and smaller changes are only on the report's page.
    """
    reported = abs(headline.change_pct) if headline.change_pct is not None else 0.0
    least = max(LEAST_PCT, reported / 2)
    worse = [finding for finding in new if finding.verdict is Grade.REGRESSION and not finding.is_profile]
    return any(finding.change_pct is None or abs(finding.change_pct) >= least for finding in worse)


def compose_follow_up(
    thread: ThreadData, new: Sequence[FindingData], parent: tuple[str, str], purpose: str, mails: ThreadMails
) -> ComposedMail:
    """Return the follow-up mail. `parent`: the sha and title of the baseline."""
    graded = [finding for finding in new if finding.is_graded]
    worse = sum(finding.verdict is Grade.REGRESSION for finding in graded)
    better = len(graded) - worse
    context = {
        "counts": counted(worse, "regression") + (f", {counted(better, 'improvement')}" if better else ""),
        "rows": [
            listed(finding, f"{finding.metric} on {finding.machine}", WIDTH)
            for finding in worst(graded)[: min(worse, _SHOWN)]  # `worst` puts regressions first
        ],
        "tables": list(tables(new)),
        "sides": sides(thread.sha, thread.title, *parent),
    }
    return mails.compose(thread, purpose, "follow_up", context)


# --- Still there in a later version ---

# Sent while a reply of the author or of the lab is missing, and counted as a reminder.

REMINDERS = ReminderPolicy()
# No reply yet, or a question to the lab is open. An author who has replied gets no reminders.
_WAITS = frozenset({State.NO_RESPONSE, State.DISPUTED, State.NEEDS_INFO})


def still_there_is_due(context: ReportContext, event: EventData, aliases: Aliases, now: datetime) -> bool:
    """Return whether to mail "still there": the event is the latest measured version, a reply is missing, and nobody
    was reminded lately: about this report, or to its first recipient.
    """
    later = [
        other
        for other in context.events
        if other.kind is EventKind.STILL_THERE and other.occurred_at > event.occurred_at
    ]
    waits = context.report_state.state in _WAITS and context.report_state.reminders
    if not waits or later or versions.parse(event.tag) is None:
        return False
    report = context.report
    if len(reminded_at([report.pk], purpose=f"{EventKind.STILL_THERE} {event.tag}")[report.pk]) >= REMINDERS.most:
        return False
    to = [aliases.proper.get(address.email, address.email) for address in context.thread.to]  # as reminders store them
    lately = Q(report=report, at__gt=now - REMINDERS.apart) | Q(person__in=to, at__gt=now - REMINDERS.per_person)
    return not Reminder.objects.annotate(at=Coalesce("mail__sent_at", "composed_at")).filter(lately).exists()


def compose_recheck(
    context: ReportContext, event: EventData, measured: FindingData | None, purpose: str, mails: ThreadMails
) -> ComposedMail:
    """Return the "still there" mail. `measured`: the new numbers, if known."""
    headline = context.headline
    values = {
        "ref": one_line(event.tag, 40),
        "ref10": event.commit[:10],
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "reported": both_sides(headline),
        "remeasured": both_sides(measured) if measured else "",
        # Somebody disputes the report or asked a question, so that the lab must answer
        "question_open": context.report_state.state is not State.NO_RESPONSE,
    }
    return mails.compose(context.thread, purpose, "recheck", values)


# --- An action of a person, announced ---

# Only if the person who took it on the report's page chose to.


def compose_status(context: ReportContext, event: EventData, purpose: str, mails: ThreadMails) -> ComposedMail:
    """Return the mail about one action, in the words that the page uses for it."""
    person, action = one_line(event.actor, 80), one_line(event.kind.replace("_", " "), 80)
    note = context.text_of(event)
    values = {
        "lines": _wrapped(f"{person} updated this report: {action}."),
        "note": _wrapped(f'"{one_line(note, 1200)}"' if note else ""),
        "status": _wrapped(f"Status: {one_line(context.report.status, 600).rstrip('.')}."),
    }
    return mails.compose(context.thread, purpose, "status", values)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 74, break_on_hyphens=False)


# --- The withdrawal of a report that was wrong ---


def withdrawal_is_due(context: ReportContext, event: EventData) -> bool:
    """Return whether the lab decided that the report is wrong, and no mail from the lab in the thread says so yet."""
    decided = bool(event.actor) and not (event.message_id and event.role is Role.REPORTER)
    return decided and context.report_state.decided_by == event.key


def compose_withdrawal(thread: ThreadData, reason: str, purpose: str, mails: ThreadMails) -> ComposedMail:
    """Return the withdrawal mail. `reason`: the text that the decision relied on, or ""."""
    lines = _wrapped(f'Reason: "{one_line(reason, 600)}"' if reason else "")
    return mails.compose(thread, purpose, "withdrawal", {"reason": lines})
