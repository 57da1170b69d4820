"""The one way in for events: append them, fold again, refresh the report's cached columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import Q

from tracker.domain import versions
from tracker.domain.events import EventData, Verdict
from tracker.domain.report_state.fold import fold
from tracker.domain.report_state.state import Fix, ReportState
from tracker.domain.report_state.text import status_text
from tracker.models import Decision, Event, OutgoingMail, OutgoingState, Purpose, Report, Suggestion
from tracker.models.outbox import WAITING
from tracker.services import bulk, report_summary

CACHE = (
    *(
        "given_title",
        "state",
        "status",
        "because",
        "awaited",
        "landing",
        "cycle",
        "fix_title",
        "fix_sha",
        "fix_landing",
    ),
    *("remark", "reported_at", "responded_at", "changed_at"),
)
# Of its line in the tables, what follows from these and from the events.
LINE = ("closed_at", "blocks", "assignee", "merged", "shifted", "heard_at", "urgency", "words")
_NEWEST = "(SELECT COALESCE(MAX(e.id), 0) FROM tracker_event e WHERE e.report_id = tracker_report.id)"
# The newest event, and in any case another than before: an event of a lower key may be committed later.
_REVISION = f"revision = CASE WHEN {_NEWEST} > revision THEN {_NEWEST} ELSE revision + 1 END"


def event_row(report: Report, event: EventData, recorded_at: datetime, quote: str = "") -> Event:
    """The row of an event, not saved yet. `quote` is the sentence that was relied on."""
    return Event(
        report=report,
        recorded_at=recorded_at,
        quote=quote[:2000],
        **{name: getattr(event, name) for name in EventData.__dataclass_fields__},
    )


def append(rows: Iterable[Event]) -> set[int]:
    """Append events without folding; facts that are known already are left as they are.

    Returns the reports whose states may have changed: the caller owes them a `refold`.
    """
    rows = list(rows)
    Event.objects.bulk_create(rows, ignore_conflicts=True)
    return {row.report_id for row in rows}


def correct_role(report: Report, event: EventData) -> None:
    """Correct who told a fact, where that is known better than when its mail was read first."""
    Event.objects.filter(report=report, key=event.key, said_by="").exclude(by=event.by).update(by=event.by)


def rejected_keys(report: Report, message_id: str) -> set[str]:
    """The keys of what a mail was taken to mean, and a person rejected or changed."""
    decided = Suggestion.objects.filter(report=report, message_id=message_id)
    return set(decided.filter(decision__in=(Decision.REJECTED, Decision.CHANGED)).values_list("key", flat=True))


def forget_mail(message_ids: models.QuerySet[Any]) -> None:
    """Take back what was concluded from these mails, since all of them are about to be read again (DESIGN rule 1).

    What a person said or decided stays.
    """
    Suggestion.objects.filter(decision=Decision.OPEN, message_id__in=message_ids).delete()
    Event.objects.filter(message_id__in=message_ids, said_by="").delete()


@transaction.atomic
def record(rows: Iterable[Event]) -> int:
    """Append events and fold. Returns how many were new."""
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
    """These reports, locked until the transaction ends: two workers that add events must not fold past each other.

    In the order of their keys, so that nobody waits in a circle. SQLite has one writer at a time anyway.
    """
    rows = Report.objects.select_for_update(of=("self",)).select_related("culprit", "tree")
    return list(rows.filter(pk__in=set(report_ids)).order_by("pk"))


def _events(reports: Iterable[int]) -> dict[int, list[Event]]:
    """The events of these reports, by report."""
    events: dict[int, list[Event]] = {pk: [] for pk in reports}
    for event in Event.objects.filter(report__in=events):
        events[event.report_id].append(event)
    return events


@transaction.atomic
def amend(report_ids: Iterable[int], tell: Callable[[Report, list[Event]], Event | None]) -> None:
    """Let `tell` look at each of these reports and its events, and add the one that it gives, if any.

    Five statements for all of them. Nobody else changes them meanwhile. An event must be new.
    """
    reports = _lock(report_ids)
    events = _events(report.pk for report in reports)
    new = [event for report in reports if (event := tell(report, events[report.pk]))]
    bulk.insert(Event, bulk.stored(Event), [bulk.values(event) for event in new])
    for event in new:
        events[event.report_id].append(event)
    told = {event.report_id for event in new}
    _write([report for report in reports if report.pk in told], events)


@transaction.atomic
def refold(report_ids: Iterable[int]) -> None:
    """Write the cached columns of these reports from their events: two reads and one write for all."""
    reports = _lock(report_ids)
    _write(reports, _events(report.pk for report in reports))


def _write(reports: Iterable[Report], events: Mapping[int, list[Event]]) -> None:
    """Fold, and write what is another than before."""
    changed: list[Report] = []
    moved: list[int] = []
    calendar = None
    for report in reports:
        standing = fold(Verdict(report.verdict), [event.value() for event in events[report.pk]])
        before, line = ([getattr(report, name) for name in names] for names in (CACHE, LINE))
        when = (report.reported_at, report.cycle)
        for name, value in cached(standing).items():
            setattr(report, name, value)
        report.changed_at = max((event.at for event in events[report.pk]), default=None)
        elsewhen = when != (report.reported_at, report.cycle)
        if elsewhen and calendar is None:
            calendar = report_summary.ReleaseCalendar.load()
        report_summary.set_columns(report, calendar if elsewhen else None)
        has_moved = before != [getattr(report, name) for name in CACHE]
        if has_moved:
            moved.append(report.pk)
        if has_moved or line != [getattr(report, name) for name in LINE]:
            changed.append(report)
    bulk.update(changed, (*CACHE, *LINE), _REVISION)
    if moved:  # what was composed of them and has not gone out must be looked at again
        unsent = Q(state__in=WAITING, sent_at__isnull=True)
        told = Q(state=OutgoingState.SENT, purpose=Purpose.REPORT)  # more may be due behind it
        mails = OutgoingMail.objects.filter(unsent | told, report__in=moved)
        mails.exclude(purpose__startswith=Purpose.ANSWER).update(stale=True, looked_at=None)


def _coming(standing: ReportState) -> versions.Version | None:
    """The cycle of what was merged after a candidate; which release follows a release, only its first tag tells."""
    after = versions.parse(standing.merged_after)
    return after if after and after.is_candidate else None


def cached(standing: ReportState) -> Mapping[str, object]:
    """A standing as the report's columns."""
    landed = versions.parse(standing.landing) or _coming(standing)
    fix = standing.fix or Fix()
    return {
        "given_title": standing.title,
        "state": standing.state,
        "status": status_text(standing),
        "because": standing.because,
        "awaited": standing.awaited,
        "landing": standing.landing,
        "cycle": landed.cycle if landed else "",
        "fix_title": fix.title,
        "fix_sha": fix.commit,
        "fix_landing": standing.fix_landing,
        "remark": standing.remark,
        "reported_at": standing.reported_at,
        "responded_at": standing.responded_at,
        "closed_at": standing.closed_at,
        "blocks": standing.blocks,
        "assignee": report_summary.clipped(standing.assignee),
    }
