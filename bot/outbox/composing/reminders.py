"""Compose reminders, each once, and cancel those that something has overtaken."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from django.db import OperationalError, transaction
from django.db.models import Q, QuerySet

from bot.compose.follow_ups.reminder_mail import ReminderData, compose_reminder
from bot.compose.policy.action import Action
from bot.compose.policy.policy import PolicyDecision
from bot.compose.policy.reminding import ReminderBatch, ReminderPolicy, batches, is_due
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.policy_context import excluded_addresses
from bot.outbox.context.quiet_reports import Quiet, quiet_reports, reminder_data, sent_reports
from bot.outbox.context.report_context import ReportContext, report_context
from bot.outbox.due_mail import overtaken_reminders
from bot.outbox.writer import COMPOSER, OutboxWriter
from tracker.models import OutgoingMail, OutgoingState, Purpose, Reminder, Report
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

_ON_THEIR_WAY = (OutgoingState.COMPOSED, OutgoingState.APPROVED, OutgoingState.SENDING)
log = logging.getLogger(__name__)


def compose_reminders(identity: BotIdentity, now: datetime, config: ComposeConfig) -> int:
    """Cancel reminders that are no longer due, and compose those that are. Return how many were composed."""
    this_round = _Round(identity, now, config, excluded_addresses(identity.aliases))
    this_round.cancel_outdated()
    if config.policy.reminders.action is Action.HOLD:
        return 0
    due = batches((each.report for each in this_round.quiet()), _last_reminded(now), config.policy.reminders, now)
    return sum(this_round.try_compose(batch) for batch in due)


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of composing. `excluded`: who gets no mail, and why."""

    identity: BotIdentity
    now: datetime
    config: ComposeConfig
    excluded: Mapping[str, str]

    @property
    def policy(self) -> ReminderPolicy:
        return self.config.policy.reminders

    def quiet(self, reports: Iterable[int] | None = None, without: Sequence[int] = ()) -> list[Quiet]:
        """Return the reports that may be reminded of, or those of `reports` that may."""
        sent = sent_reports(self.now - self.policy.oldest)
        sent = sent if reports is None else sent.filter(report__in=reports)
        return quiet_reports(sent, self.identity, self.policy, self.excluded, self.now, without)

    def try_compose(self, batch: ReminderBatch) -> bool:
        """Compose one reminder. An error keeps no other from being composed."""
        keys = [each.key for each in batch.reports]
        try:
            with transaction.atomic():
                locks.take(Lock.REMINDERS)
                # Whatever happens to them from here on finds the reminder, and marks it as outdated.
                list(Report.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk"))
                by_key = {each.report.key: each for each in self.quiet(keys)}
                still = batches(
                    (each.report for each in by_key.values()), _last_reminded(self.now), self.policy, self.now
                )
                same = [each for each in still if each.person == batch.person]
                return bool(same) and self._compose(batch.person, [by_key[each.key] for each in same[0].reports])
        except OperationalError as busy:  # the next round tries again
            log.error("%s: composing a reminder failed: %s", batch.person, busy)
        except Exception:  # bad data from a lab, a tree or a mail
            log.exception("%s: composing a reminder failed", batch.person)
        return False

    def _compose(self, person: str, due: Sequence[Quiet]) -> bool:
        first, *others = due
        purpose = _next_purpose(first.report.key)
        context = report_context(first.sent, self.config.conventions)
        data = reminder_data(first, others, context.headline)
        mail = compose_reminder(context.thread, data, purpose, self.identity, self.now, self.excluded)
        if first.person.email not in [each.email for each in mail.recipients.to]:
            return False  # whoever is awaited gets no mail from us
        writer = OutboxWriter(self.identity, self.config, self.now)
        start = writer.decide_start(mail, PolicyDecision(self.policy.action), foreign=_foreign(context, data))
        if not writer.insert(context.report, mail, purpose, start):
            return False
        row = OutgoingMail.objects.get(report=context.report, purpose=purpose)
        Reminder.objects.bulk_create(
            Reminder(report_id=each.report.key, mail=row, person=person, composed_at=self.now) for each in due
        )
        return True

    def cancel_outdated(self) -> None:
        """Cancel unsent reminders about which something has come in, or that somebody else is due for by now."""
        rows = list(_unsent())
        named: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for mail, report, person in Reminder.objects.filter(mail__in=rows).values_list("mail", "report", "person"):
            named[mail].append((report, person))
        reports = {report for each in named.values() for report, _ in each}
        found = self.quiet(reports, without=[row.pk for row in rows]) if rows else []
        due = {each.report.key: each.report.person for each in found if is_due(each.report, self.policy, self.now)}
        overtaken = set(overtaken_reminders().values_list("pk", flat=True)) if rows else set()
        for row in rows:
            as_then = bool(named[row.pk]) and all(due.get(report) == person for report, person in named[row.pk])
            if row.stale or not as_then or row.pk in overtaken or self.policy.action is Action.HOLD:
                _cancel(row, self.now)


def _foreign(context: ReportContext, data: ReminderData) -> list[str]:
    """Return the texts in a reminder that are not ours, which the lint looks at."""
    head = context.headline
    names = [context.thread.title, head.metric, head.suite, head.machine, head.unit, data.state, data.person.name]
    quoted = [data.last_word.author, *data.last_word.lines] if data.last_word else []
    return [*names, *quoted, *(text for each in data.others for text in (each.subject, each.state))]


def _next_purpose(report: int) -> str:
    """Return the purpose of a report's next reminder; one that we cancelled before it left is composed again."""
    mails = OutgoingMail.objects.filter(report=report, purpose__startswith=Purpose.REMINDER)
    unused = Q(state=OutgoingState.CANCELLED, decided_by_person=False, attempts=0)
    used = set(mails.exclude(unused).values_list("purpose", flat=True))
    return next(name for number in count(1) if (name := f"{Purpose.REMINDER}{number}") not in used)


def _cancel(row: OutgoingMail, now: datetime) -> None:
    """Cancel a reminder that has not left. It names no report any more, unless an operator had decided on it."""
    reason = f"no longer due: {row.about.status}"[:1000]
    with transaction.atomic():
        waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=WAITING, sent_at=None)
        columns = {"reason": reason, "stale": False, "not_before": None, "decided_by_person": _held_by_person(row)}
        done = mail_transitions.transition(waiting, OutgoingState.CANCELLED, COMPOSER, now, reason, **columns)
        if done and not _held_by_person(row):
            Reminder.objects.filter(mail=row).delete()


def _held_by_person(row: OutgoingMail) -> bool:
    return row.state == OutgoingState.HELD and row.decided_by_person


def _unsent() -> QuerySet[OutgoingMail]:
    """Return the reminders that no server has accepted for anybody."""
    rows = OutgoingMail.objects.filter(purpose__startswith=Purpose.REMINDER, state__in=WAITING, sent_at=None)
    return rows.select_related("report__culprit").order_by("pk")


def _last_reminded(now: datetime) -> dict[str, datetime]:
    """Return when each person was last reminded: now, if a mail to them is on its way."""
    rows = Reminder.objects.values_list("person", "mail__state", "mail__sent_at", "composed_at")
    found: dict[str, datetime] = {}
    for person, state, sent_at, composed_at in rows.distinct():
        at = now if state in _ON_THEIR_WAY else sent_at or composed_at
        found[person] = max(found.get(person, at), at)
    return found
