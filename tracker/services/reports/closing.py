"""Suggest what may be closed by now (tracker/domain/timing/closing.py), each once; a person decides."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from tracker.domain.events import OPEN, EventData, EventKind, Role, Verdict
from tracker.domain.timing.closing import GONE_FOR, Closing, closing_of
from tracker.models import Decision, Event, Release, Report, Suggestion

RULE = "closing"
MOST = 20_000  # reports in a round


def suggest_closings(now: datetime) -> int:
    """Suggest to close what may be closed; return how many suggestions are new. Those whose reason is gone go."""
    gone = Event.objects.filter(kind=EventKind.GONE, occurred_at__lt=now - GONE_FOR).values("report")
    candidates = Q(verdict=Verdict.IMPROVEMENT) | Q(pk__in=gone)
    reports = list(Report.objects.filter(candidates, state__in=sorted(OPEN)).order_by("pk")[:MOST])
    events: dict[int, list[EventData]] = {report.pk: [] for report in reports}
    for event in Event.objects.filter(report__in=reports):
        events[event.report_id].append(event.value())
    released = dict(Release.objects.exclude(released_at=None).values_list("version", "released_at"))
    rows = [
        _suggestion(report, closing, now)
        for report in reports
        if (
            closing := closing_of(
                Verdict(report.verdict),
                events[report.pk],
                released.get(report.merged_release or report.shift_left_release),
                now,
            )
        )
    ]
    given = {(each.report_id, each.key) for each in rows}
    waiting = Suggestion.objects.filter(rule=RULE, decision=Decision.OPEN).values_list("pk", "report", "key")
    outdated = [pk for pk, report, key in waiting if (report, key) not in given]
    Suggestion.objects.filter(pk__in=outdated, decision=Decision.OPEN).delete()
    before = Suggestion.objects.filter(rule=RULE).count()
    Suggestion.objects.bulk_create(rows, ignore_conflicts=True)
    return Suggestion.objects.filter(rule=RULE).count() - before


def _suggestion(report: Report, closing: Closing, now: datetime) -> Suggestion:
    return Suggestion(
        report=report,
        key=closing.key,
        kind=closing.kind,
        occurred_at=now,
        role=Role.MACHINE,
        quote=closing.reason,
        rule=RULE,
        why="nothing has moved it since",
    )
