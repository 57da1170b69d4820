"""`/statistics/`: how fast regressions are answered and fixed, what came of them, and how often reports were wrong.

Computed from the newest reports in a constant number of queries, and kept for some minutes; also a table for
spreadsheets.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db.models import Exists, Min, OuterRef
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from tracker.charts import TrendPoint, trend_chart
from tracker.documents.csv_tables import digits
from tracker.domain import timeline, versions
from tracker.domain.events import EventKind, ReportedBy, State
from tracker.domain.track_record import FEWEST, OUTCOMES, WITHIN, Course, Group, Share, by, group
from tracker.models import Event, Report, RuleRecord
from tracker.pages.http import csv_response, kept

NEWEST = 20_000  # reports
_KEEP = 600.0  # seconds
_BY = ("release", "subsystem", "suite", "machine")


def load_statistics() -> dict[str, Any]:
    """Return the newest reports as one group (`total`), in `tables` by what they are grouped by, and how people decided
    on suggestions (`rules`).
    """
    courses = list(_courses())
    tables = {name: by(courses, attrgetter(name)) for name in _BY}
    numbers = {row.name: version.number for row in tables["release"] if (version := versions.parse(row.name))}
    tables["release"].sort(key=lambda row: -numbers.get(row.name, 0))
    return {"total": group("all", courses), "tables": tables, "rules": list(RuleRecord.objects.all()[:100])}


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
    """Show how fast regressions are answered and fixed, what came of them, and how both develop."""
    context = kept("statistics", load_statistics, _KEEP)
    within = list(zip(WITHIN, context["total"].within, strict=True))
    releases = [group for group in reversed(context["tables"]["release"]) if group.response.of >= FEWEST]
    trends = [
        ("Precision: settled regressions that were real, in per cent", trend_chart(_shares(releases), "Precision")),
        ("Days to the first response, the median", trend_chart(_days(releases), "Days to the first response")),
    ]
    outcomes = [(timeline.LABELS[state], number) for state, number in context["total"].outcomes.items()]
    shown = {**context, "within": within, "trends": [pair for pair in trends if pair[1]], "outcomes": outcomes}
    return render(request, "statistics.html", shown)


def _shares(groups: Iterable[Group]) -> list[TrendPoint]:
    points = []
    for entry in groups:
        share = entry.precision
        low, high = share.bounds or (None, None)
        points.append(TrendPoint(entry.name, share.pct, low, high, f"{entry.name}: {share.number} of {share.of}"))
    return points


def _days(groups: Iterable[Group]) -> list[TrendPoint]:
    def days(time: timedelta | None) -> float | None:
        return None if time is None else time / timedelta(days=1)

    return [
        TrendPoint(
            group.name,
            days(group.response.median),
            days(group.response.low or group.response.median),
            days(group.response.high or group.response.median),
            f"{group.name}: of {group.response.known} whose time is known",
        )
        for group in groups
    ]


_Named = tuple[str, Group]  # a group, and what it was grouped by


def _columns() -> Iterator[tuple[str, Callable[[_Named], object]]]:
    yield "by", lambda row: row[0]
    yield "name", lambda row: row[1].name
    yield "regressions", lambda row: row[1].response.of
    for name in _TIMES:
        times = attrgetter(name)
        yield f"{name}_number", lambda row, times=times: times(row[1]).number  # type: ignore[misc]
        for part, called in (("median", "median"), ("low", "median_low"), ("high", "median_high"), ("slow", "p90")):
            yield f"{name}_{called}_hours", lambda row, times=times, part=part: _hours(getattr(times(row[1]), part))  # type: ignore[misc]
    for name in _SHARES:
        share = attrgetter(name)
        yield f"{name}_number", lambda row, share=share: share(row[1]).number  # type: ignore[misc]
        yield f"{name}_of", lambda row, share=share: share(row[1]).of  # type: ignore[misc]
        for place, end in enumerate(("low", "high")):
            yield f"{name}_{end}_pct", lambda row, share=share, place=place: _end(share(row[1]), place)  # type: ignore[misc]
    for state in OUTCOMES:
        yield state.value, lambda row, state=state: row[1].outcomes.get(state, 0)  # type: ignore[misc]


_SHARES = ("confirmed", "disputed", "precision")
CSV = dict(_columns())


@require_safe
def statistics_csv(request: HttpRequest) -> HttpResponseBase:
    """Return all groups as CSV; times are in hours."""
    newest = kept("statistics", load_statistics, _KEEP)
    named = {"all": [newest["total"]], **newest["tables"]}
    return csv_response(CSV, ((kind, group) for kind, groups in named.items() for group in groups))


def _hours(time: timedelta | None) -> Decimal | None:
    return None if time is None else digits(time / timedelta(hours=1), 1.0)


def _end(share: Share, place: int) -> Decimal | None:
    return digits(share.bounds[place], 1.0) if share.bounds else None
