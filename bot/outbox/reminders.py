"""Compose reminders, each once, and cancel those that something has overtaken."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from django.db import OperationalError, transaction
from django.db.models import Q, QuerySet

from bot.compose.follow_ups.reminder_mail import compose_reminder
from bot.compose.policy.action import Action
from bot.compose.policy.policy import PolicyDecision
from bot.compose.policy.reminding import ReminderBatch, batches, is_due
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.policy_context import excluded_addresses
from bot.outbox.context.quiet_reports import Quiet, quiet_reports, reminder_data, sent_reports
from bot.outbox.context.report_context import report_context
from bot.outbox.writer import COMPOSER, OutboxWriter
from tracker.models import OutgoingMail, OutgoingState, Purpose, Reminder
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

log = logging.getLogger(__name__)


def compose_reminders(identity: BotIdentity, now: datetime, config: ComposeConfig) -> int:
    """Cancel reminders that are no longer due, and compose those that are. Return how many were composed."""
    policy = config.policy.reminders
    excluded = excluded_addresses(identity.aliases)
    _cancel_outdated(identity, now, config, excluded)
    if policy.action is Action.HOLD:
        return 0
    found = quiet_reports(sent_reports(now - policy.oldest), identity, policy, excluded, now)
    by_key = {each.report.key: each for each in found}
    due = batches((each.report for each in found), _last_reminded(now), policy, now)
    writer = OutboxWriter(identity, config, now)
    return sum(_try_compose(batch, by_key, writer, excluded) for batch in due)


def _try_compose(
    batch: ReminderBatch, quiet: Mapping[int, Quiet], writer: OutboxWriter, excluded: Mapping[str, str]
) -> bool:
    """Compose one reminder. An error keeps no other from being composed."""
    try:
        with transaction.atomic():
            locks.take(Lock.REMINDERS)
            return _compose(batch, quiet, writer, excluded)
    except OperationalError as busy:  # the next round tries again
        log.error("%s: composing a reminder failed: %s", batch.person, busy)
    except Exception:  # bad data from a lab, a tree or a mail
        log.exception("%s: composing a reminder failed", batch.person)
    return False


def _compose(
    batch: ReminderBatch, quiet: Mapping[int, Quiet], writer: OutboxWriter, excluded: Mapping[str, str]
) -> bool:
    first, *others = (quiet[each.key] for each in batch.reports)
    purpose = f"{Purpose.REMINDER}{len(first.report.reminded) + 1}"
    context = report_context(first.sent)
    data = reminder_data(first, others, context.headline)
    mail = compose_reminder(context.thread, data, purpose, writer.identity, writer.now, excluded)
    if first.person.email not in [each.email for each in mail.recipients.to]:
        return False  # whoever is awaited gets no mail from us
    head = context.headline
    quoted = (data.last_word.author, *data.last_word.lines) if data.last_word else ()
    subjects = [text for each in data.others for text in (each.subject, each.state)]
    foreign = [
        context.thread.title,
        head.metric,
        head.suite,
        head.machine,
        head.unit,
        data.state,
        first.person.name,
        *quoted,
        *subjects,
    ]
    decision = PolicyDecision(writer.config.policy.reminders.action)
    start = writer.decide_start(mail, decision, foreign=foreign)
    if not writer.insert(context.report, mail, purpose, start):
        return False
    row = OutgoingMail.objects.get(report=context.report, purpose=purpose)
    Reminder.objects.bulk_create(
        Reminder(report_id=each.key, mail=row, person=batch.person, composed_at=writer.now) for each in batch.reports
    )
    return True


def _cancel_outdated(identity: BotIdentity, now: datetime, config: ComposeConfig, excluded: Mapping[str, str]) -> None:
    """Cancel unsent reminders about which something has come in, or that somebody else is due for by now."""
    policy, rows = config.policy.reminders, list(_unsent().filter(attempts=0).order_by("pk"))
    named: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for mail, report, person in Reminder.objects.filter(mail__in=rows).values_list("mail", "report", "person"):
        named[mail].append((report, person))
    reports = {report for each in named.values() for report, _ in each}
    sent = sent_reports(now - policy.oldest).filter(report__in=reports)
    found = quiet_reports(sent, identity, policy, excluded, now, without=[row.pk for row in rows]) if rows else []
    due = {each.report.key: each.report.person for each in found if is_due(each.report, policy, now)}
    for row in rows:
        as_then = bool(named[row.pk]) and all(due.get(report) == person for report, person in named[row.pk])
        if row.stale or not as_then:
            _cancel(row, now)


def _cancel(row: OutgoingMail, now: datetime) -> None:
    reason = f"no longer due: {row.about.status}"[:1000]
    with transaction.atomic():
        waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=WAITING, attempts=0)
        columns = {"reason": reason, "stale": False, "not_before": None, "decided_by_person": False}
        if mail_transitions.transition(waiting, OutgoingState.CANCELLED, COMPOSER, now, reason, **columns):
            Reminder.objects.filter(mail=row).delete()


def _unsent() -> QuerySet[OutgoingMail]:
    """Return reminders that were not sent, but for those that a person holds."""
    rows = OutgoingMail.objects.filter(purpose__startswith=Purpose.REMINDER, state__in=WAITING)
    return rows.exclude(Q(state=OutgoingState.HELD) & Q(decided_by_person=True)).select_related("report__culprit")


def _last_reminded(now: datetime) -> dict[str, datetime]:
    """Return when each person was last reminded: now, if a mail to them is waiting."""
    rows = Reminder.objects.exclude(mail__state=OutgoingState.CANCELLED).values_list("person", "mail__sent_at")
    found: dict[str, datetime] = {}
    for person, sent_at in rows.distinct():
        found[person] = max(found.get(person, sent_at or now), sent_at or now)
    return found
