"""The data of the subsystem, machine, metric and author pages, in a constant number of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Count, QuerySet
from django.http import Http404

from tracker.domain.events import OPEN
from tracker.domain.track_record import Past, TrackRecord, record
from tracker.models import Curve, Machine, Metric, Report
from tracker.pages.measurements.queries import curves_of
from tracker.pages.triage.counts import COUNTED, KEEP, Counts
from tracker.pages.triage.counts import MOST as OFFERED
from tracker.pages.triage.counts import Count as ValueCount
from tracker.pages.triage.queries import TriageSection, listed, section
from tracker.pages.triage.query import TriageQuery
from tracker.services.reports.report_summary import clipped

KINDS = ("subsystem", "machine", "metric", "author")
RECORD = 2000  # the newest reports, from which the record is computed
MOST = 500  # names in a list


@dataclass(frozen=True, slots=True)
class BrowsePage:
    """One subsystem, machine, metric or author."""

    kind: str
    name: str
    section: TriageSection
    record: TrackRecord
    machine: Machine | None
    metric: Metric | None
    curves: Sequence[Curve]
    counts: Counts  # of the newest reports, for the filters


def names(kind: str) -> Sequence[tuple[str, int]]:
    """Return the names that have open reports, with their number, the most first."""
    key = f"things:{kind}"
    found: list[tuple[str, int]] | None = cache.get(key)
    if found is None:
        rows = Report.objects.filter(state__in=sorted(OPEN)).exclude(**{kind: ""}).order_by()
        grouped = rows.values_list(kind).annotate(number=Count("pk"))
        found = list(grouped.order_by("-number", kind)[:MOST])
        cache.set(key, found, KEEP)
    return found


def page(kind: str, name: str, query: TriageQuery, now: datetime) -> BrowsePage:
    """Return the page of one name; raise Http404 if it is unknown."""
    name, reports = _reports(kind, name)
    machine = Machine.objects.filter(name=name).first() if kind == "machine" else None
    metric = Metric.objects.filter(name=name).first() if kind == "metric" else None
    shown = _shown(reports, query)
    found = section("merged", "Reports" if shown is reports else "Open reports", shown, query, now)
    newest = _newest(reports)
    past = record(map(_past, newest))
    if not (past.total.reports or machine or metric):
        raise Http404(f"there is no {kind} {name[:200]}")
    curves = curves_of(kind, name) if kind in ("metric", "machine") else []
    return BrowsePage(kind, name, found, past, machine, metric, curves, _counts(newest))


def exported(
    kind: str, name: str, query: TriageQuery, absolute: Callable[[str], str]
) -> tuple[str, list[dict[str, Any]]]:
    """Return a name and its reports as values; raise Http404 if no report has it."""
    name, reports = _reports(kind, name)
    if not reports.exists():
        raise Http404(f"there is no {kind} {name[:200]}")
    return name, listed(_shown(reports, query), query, absolute)


def _reports(kind: str, name: str) -> tuple[str, QuerySet[Report]]:
    if "\0" in name:  # no database stores NUL, so no name has it
        raise Http404(f"there is no such {kind}")
    name = name.lower() if kind == "author" else name
    return name, Report.objects.filter(**{kind: clipped(name)})


def _shown(reports: QuerySet[Report], query: TriageQuery) -> QuerySet[Report]:
    """Return those that are open, unless a filter asks for states."""
    has_state_filter = "state" in query.active_filters or "state!" in query.active_filters
    return reports if has_state_filter else reports.filter(state__in=sorted(OPEN))


def _newest(reports: QuerySet[Report]) -> list[dict[str, Any]]:
    columns = ("merged_release", "shift_left_release", "reported_at", "responded_at", "noise_pct")
    return list(reports.order_by("-pk").values(*columns, *COUNTED.values())[:RECORD])


def _past(row: Mapping[str, Any]) -> Past:
    release = row["merged_release"] or row["shift_left_release"] or "not in a release"
    return Past(release, row["state"], row["verdict"], row["reported_at"], row["responded_at"], row["noise_pct"])


def _counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[ValueCount]]:
    """Return how many of these reports each filter value has, the most first."""
    found = {}
    for name, column in COUNTED.items():
        values = Counter(str(row[column]) for row in rows if row[column])
        found[name] = [ValueCount(value, number) for value, number in values.most_common(OFFERED)]
    return found
