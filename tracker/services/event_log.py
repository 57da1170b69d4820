"""The event log, the only way to add events: append them, and fold again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import Exists, Q

from tracker.domain.events import EventData, Verdict
from tracker.domain.report_state.fold import fold
from tracker.models import Decision, Event, OutgoingMail, OutgoingState, Purpose, Reminder, Report, Suggestion
from tracker.models.outbox import WAITING
from tracker.services.reports import report_summary
from tracker.services.sql import bulk

LATE = timedelta(hours=1)  # the longest delay between an event and its row


def recorded_between(first: datetime, told: datetime, now: datetime) -> models.QuerySet[Event]:
    """Return the events for somebody who has been told of all until `told`, and of none before `first`.

    By when we learned of something, not by when it was written: mail is read, and trees are walked, later. What was
    learned while they were told may have been recorded after it: the last hour comes once more.
    """
    return Event.objects.filter(recorded_at__gt=max(first, told - LATE), recorded_at__lte=now)


def event_row(report: Report, event: EventData, recorded_at: datetime, quote: str = "") -> Event:
    """Return the unsaved row of an event. `quote` is the sentence that it is based on."""
    return Event(
        report=report,
        recorded_at=recorded_at,
        quote=quote[:2000],
        **{name: getattr(event, name) for name in EventData.__dataclass_fields__},
    )


def append(rows: Iterable[Event]) -> set[int]:
    """Append events without folding; events that are already known are skipped.

    Returns the reports whose states may have changed: the caller must `refold` them.
    """
    rows = list(rows)
    bulk.insert_new(rows)
    return {row.report_id for row in rows}


def correct(report: Report, event: EventData, quote: str) -> None:
    """Correct what a mail's event says, where that is known better than when the mail was first read."""
    columns = ("role", "title", "commit", "tree", "remark", "in_reply_to")
    said = {name: getattr(event, name) for name in columns} | {"quote": quote[:2000]}
    Event.objects.filter(report=report, key=event.key, actor="").exclude(**said).update(**said)


def rejected_keys(report: Report, message_id: str) -> set[str]:
    """Return the keys of a mail's suggestions that a user rejected or changed."""
    decided = Suggestion.objects.filter(report=report, message_id=message_id)
    return set(decided.filter(decision__in=(Decision.REJECTED, Decision.CHANGED)).values_list("key", flat=True))


def forget_mail(message_ids: models.QuerySet[Any] | Sequence[str]) -> None:
    """Delete what was concluded from these mails, which are about to be read again (DESIGN rule 1).

    What a user said or decided is kept.
    """
    Suggestion.objects.filter(decision=Decision.OPEN, message_id__in=message_ids).delete()
    Event.objects.filter(message_id__in=message_ids, actor="").delete()


@transaction.atomic
def record(rows: Iterable[Event]) -> int:
    """Append events and fold. Returns the number of new ones."""
    rows = list(rows)
    if not rows:
        return 0
    reports = {row.report_id for row in rows}
    _lock(reports)
    before = Event.objects.filter(report__in=reports).count()
    append(rows)
    new = Event.objects.filter(report__in=reports).count() - before
    if new:
        refold(reports)
    return new


def _lock(report_ids: Iterable[int]) -> list[Report]:
    """Return these reports, locked until the transaction ends: concurrent folds must not overwrite each other.

    `followed` of each: whether a mainline tree is followed (report_summary.mainline_followed), without a further query.

    Locked in the order of their keys, to avoid deadlocks. SQLite has a single writer anyway.
    """
    rows = Report.objects.select_for_update(of=("self",)).select_related("culprit", "tree")
    rows = rows.annotate(followed=Exists(report_summary.WALKED_MAINLINES))
    return list(rows.filter(pk__in=set(report_ids)).order_by("pk"))


def _events(reports: Iterable[int]) -> dict[int, list[Event]]:
    """Return the events of these reports, by report."""
    events: dict[int, list[Event]] = {pk: [] for pk in reports}
    for event in Event.objects.filter(report__in=events):
        events[event.report_id].append(event)
    return events


@transaction.atomic
def amend(report_ids: Iterable[int], make_event: Callable[[Report, list[Event]], Event | None]) -> None:
    """Call `make_event` with each of these reports and its events, and append the event that it returns, if any.

    Five statements in all. The reports are locked meanwhile. The event must be new.
    """
    reports = _lock(report_ids)
    events = _events(report.pk for report in reports)
    new = [event for report in reports if (event := make_event(report, events[report.pk]))]
    bulk.insert(Event, bulk.stored(Event), [bulk.values(event) for event in new])
    for event in new:
        events[event.report_id].append(event)
    changed_ids = {event.report_id for event in new}
    _write([report for report in reports if report.pk in changed_ids], events)


@transaction.atomic
def refold(report_ids: Iterable[int]) -> None:
    """Write the cached columns of these reports from their events: two reads and one write in all."""
    reports = _lock(report_ids)
    _write(reports, _events(report.pk for report in reports))


def _write(reports: Sequence[Report], events: Mapping[int, list[Event]]) -> None:
    """Fold, write what changed, and have unsent mail about that checked again."""
    states = {
        report.pk: fold(Verdict(report.verdict), [event.value() for event in events[report.pk]]) for report in reports
    }
    changed_at = {pk: max((event.occurred_at for event in rows), default=None) for pk, rows in events.items()}
    followed = any(vars(report)["followed"] for report in reports)
    if moved := report_summary.write_states(reports, states, changed_at, followed=followed):
        unsent = Q(state__in=WAITING, sent_at__isnull=True)
        sent_reports = Q(state=OutgoingState.SENT, purpose=Purpose.REPORT)  # a follow-up may be due
        own = (unsent | sent_reports) & Q(report__in=moved)
        reminders = Reminder.objects.filter(report__in=moved)  # which may name several reports
        mails = OutgoingMail.objects.filter(own | unsent & Q(pk__in=reminders.values("mail")))
        mails.exclude(purpose__startswith=Purpose.ANSWER).update(stale=True, looked_at=None)
