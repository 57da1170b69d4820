"""`/statistics/`: how fast regressions are answered and fixed, and how often reports were wrong.

Computed from the newest reports in a constant number of queries, and kept for some minutes; also a table for
spreadsheets.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from operator import attrgetter
from typing import Any

from django.core.cache import cache
from django.db.models import Exists, Min, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from tracker.domain import versions
from tracker.domain.events import EventKind, ReportedBy, State
from tracker.domain.text import safe_cell
from tracker.domain.track_record import WITHIN, Course, by, group
from tracker.models import Event, Report, RuleRecord

NEWEST = 20_000  # reports
_KEEP = 600.0  # seconds
_BY = ("release", "subsystem", "suite", "machine")


def load_statistics() -> dict[str, Any]:
    """Return the newest reports as one group (`total`), in `tables` by what they are grouped by, and how people decided
    on suggestions (`rules`).
    """
    statistics: dict[str, Any] | None = cache.get("statistics")
    if statistics is None:
        courses = list(_courses())
        tables = {name: by(courses, attrgetter(name)) for name in _BY}
        numbers = {row.name: version.number for row in tables["release"] if (version := versions.parse(row.name))}
        tables["release"].sort(key=lambda row: -numbers.get(row.name, 0))
        statistics = {"total": group("all", courses), "tables": tables, "rules": list(RuleRecord.objects.all()[:100])}
        cache.set("statistics", statistics, _KEEP)
    return statistics


def _courses() -> Iterator[Course]:
    """Yield the newest mailed reports: one query for them, one for the fixes that were posted and that landed."""
    oldest = Report.objects.order_by("-pk").values_list("pk", flat=True)[NEWEST : NEWEST + 1]
    by_robots = Report.objects.filter(pk__gt=next(iter(oldest), 0), reported_by=ReportedBy.ROBOT)
    rows = by_robots.exclude(reported_at=None)
    undone = Event.objects.filter(report=OuterRef("report"), reverses=OuterRef("key"))
    events = Event.objects.filter(kind__in=(EventKind.FIX_PROPOSED, EventKind.FIX_LANDED), report__in=rows)
    firsts = events.exclude(Exists(undone)).order_by().values_list("report", "kind").annotate(at=Min("occurred_at"))
    first = {(report, kind): at for report, kind, at in firsts}
    names = ("subsystem", "suite", "machine", "state", "verdict", "reported_at", "responded_at")
    for row in rows.values("pk", "merged_release", "shift_left_release", "closed_at", *names):
        fixed = row["state"] == State.FIXED
        yield Course(
            release=row["merged_release"] or row["shift_left_release"],
            candidate_at=first.get((row["pk"], EventKind.FIX_PROPOSED)),
            landed_at=first.get((row["pk"], EventKind.FIX_LANDED), row["closed_at"]) if fixed else None,
            **{name: row[name] for name in names},
        )


# --- Views ---

_TIMES = ("response", "candidate", "landing")


@require_safe
def statistics(request: HttpRequest) -> HttpResponse:
    """Show how fast regressions are answered and fixed, and how often reports were wrong."""
    context = load_statistics()
    within = list(zip(WITHIN, context["total"].within, strict=True))
    return render(request, "statistics.html", {**context, "within": within})


@require_safe
def statistics_csv(request: HttpRequest) -> HttpResponse:
    """Return all groups as CSV; times are in hours."""
    newest, out = load_statistics(), io.StringIO()
    table = csv.writer(out)
    names = [f"{name}_{part}" for name in _TIMES for part in ("number", "median_hours", "p90_hours")]
    table.writerow(["by", "name", "regressions", *names, "ended", "false_alarms"])
    for kind, groups in {"all": [newest["total"]], **newest["tables"]}.items():
        for record in groups:
            times = [getattr(record, name) for name in _TIMES]
            values = [value for of in times for value in (of.number, _hours(of.median), _hours(of.slow))]
            table.writerow([kind, safe_cell(record.name), record.response.of, *values, record.ended, record.false])
    return HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8")


def _hours(time: timedelta | None) -> str:
    return "" if time is None else f"{time.total_seconds() / 3600:.1f}"
