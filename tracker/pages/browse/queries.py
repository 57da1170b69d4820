"""The data of the subsystem, machine, metric and author pages, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Count, QuerySet
from django.http import Http404

from tracker.domain.events import OPEN
from tracker.domain.track_record import Past, TrackRecord, record
from tracker.models import Curve, Machine, Metric, Report
from tracker.pages.measurements.queries import curves_of
from tracker.pages.triage.counts import KEEP
from tracker.pages.triage.queries import TriageSection, section
from tracker.pages.triage.query import TriageQuery
from tracker.services.report_summary import clipped

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
    if "\0" in name:  # no database stores NUL, so no name has it
        raise Http404(f"there is no such {kind}")
    name = name.lower() if kind == "author" else name
    reports = Report.objects.filter(**{kind: clipped(name)})
    machine = Machine.objects.filter(name=name).first() if kind == "machine" else None
    metric = Metric.objects.filter(name=name).first() if kind == "metric" else None
    has_state_filter = "state" in query.active_filters or "state!" in query.active_filters
    listed = reports if has_state_filter else reports.filter(state__in=sorted(OPEN))
    found = section("merged", "Reports" if has_state_filter else "Open reports", listed, query, now)
    past = record(_past(reports))
    if not (past.total.reports or machine or metric):
        raise Http404(f"there is no {kind} {name[:200]}")
    curves = curves_of(kind, name) if kind in ("metric", "machine") else []
    return BrowsePage(kind, name, found, past, machine, metric, curves)


def _past(reports: QuerySet[Report]) -> list[Past]:
    columns = ("merged_release", "shift_left_release", "state", "verdict", "reported_at", "responded_at", "noise_pct")
    newest = reports.order_by("-pk").values_list(*columns)[:RECORD]
    return [Past(merged or shifted or "not in a release", *rest) for merged, shifted, *rest in newest]
