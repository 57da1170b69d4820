"""The one way in for events: append them, fold again, refresh the report's cached columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction

from tracker import status, versions
from tracker.models import Event, Report

CACHE = (
    *("given_title", "state", "status", "awaited", "landing", "cycle", "fix_title", "fix_sha", "fix_landing"),
    *("remark", "reported_at", "responded_at", "changed_at"),
)


def event_row(report: Report, event: status.Event, recorded_at: datetime, quote: str = "") -> Event:
    """The row of an event, not saved yet. `quote` is the sentence that was relied on."""
    return Event(
        report=report,
        recorded_at=recorded_at,
        quote=quote[:2000],
        **{name: getattr(event, name) for name in status.Event.__dataclass_fields__},
    )


@transaction.atomic
def record(rows: Iterable[Event]) -> int:
    """Append events; facts that are known already are left as they are. Returns how many were new."""
    rows = list(rows)
    reports = {row.report_id for row in rows}
    before = Event.objects.filter(report__in=reports).count()
    Event.objects.bulk_create(rows, ignore_conflicts=True)
    new = Event.objects.filter(report__in=reports).count() - before
    if new:
        refold(reports)
    return new


def refold(report_ids: Iterable[int]) -> None:
    """Write the cached columns of these reports from their events: two reads and one write for all."""
    reports = {report.pk: report for report in Report.objects.filter(pk__in=set(report_ids))}
    events: dict[int, list[Event]] = {pk: [] for pk in reports}
    for event in Event.objects.filter(report__in=reports):
        events[event.report_id].append(event)
    for pk, report in reports.items():
        standing = status.fold(status.Verdict(report.verdict), [event.value() for event in events[pk]])
        changed_at = max((event.at for event in events[pk]), default=None)
        for name, value in cached(standing).items():
            setattr(report, name, value)
        report.changed_at = changed_at
    Report.objects.bulk_update(reports.values(), CACHE, batch_size=200)


def cached(standing: status.Standing) -> Mapping[str, object]:
    """A standing as the report's columns."""
    landed = versions.parse(standing.landing)
    fix = standing.fix or status.Fix()
    return {
        "given_title": standing.title,
        "state": standing.state,
        "status": status.sentence(standing),
        "awaited": standing.awaited,
        "landing": standing.landing,
        "cycle": landed.cycle if landed else "",
        "fix_title": fix.title,
        "fix_sha": fix.commit,
        "fix_landing": standing.fix_landing,
        "remark": standing.remark,
        "reported_at": standing.reported_at,
        "responded_at": standing.responded_at,
    }
