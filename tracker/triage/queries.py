"""The rows of a release's triage table: what was merged in its cycle, and what was reported from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Prefetch, Q, QuerySet

from tracker.models import Finding, Release, Report, StableSeries
from tracker.models.report import SHOWN
from tracker.models.tree import TreeRole

LIMIT = 1000  # rows a section: a release of the lab has some fifty


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, with the columns of the 0-Day report."""

    indicator: str
    report: str
    sha: str
    scenario: tuple[tuple[str, str], ...]
    machine: str
    base: str
    status: str
    state: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Table:
    """The two sections of a release (DESIGN 4.3). A report may stand in both."""

    merged: tuple[Row, ...]
    shift_left: tuple[Row, ...]


def cycle_bounds(release: Release) -> tuple[datetime | None, datetime | None]:
    """When the cycle began (excluded) and ended (included); None: not known, or not yet."""
    before = Release.objects.filter(number__lt=release.number, released_at__isnull=False).first()
    return (before.released_at if before else None), release.released_at


def merged_reports(release: Release) -> QuerySet[Report]:
    """The reports whose culprit landed in this cycle."""
    return Report.objects.filter(SHOWN, cycle=release.version)


def shift_left_reports(release: Release) -> QuerySet[Report]:
    """What was reported during the cycle from another tree than the mainline.

    A culprit in the mainline whose cycle is not known yet stands here too, so that nothing is hidden.
    """
    began, ended = cycle_bounds(release)
    rows = Report.objects.filter(reported_at__isnull=False)
    if began:
        rows = rows.filter(reported_at__gt=began)
    if ended:
        rows = rows.filter(reported_at__lte=ended)
    return rows.filter(Q(tree__isnull=True) | ~Q(tree__role=TreeRole.MAINLINE) | Q(cycle=""))


def table(release: Release, states: Iterable[str] = (), *, missing_in_stable: bool = False) -> Table:
    """Both sections, each in a constant number of queries; of these states, or what a stable series lacks a fix of."""
    sections = []
    for reports in (merged_reports(release), shift_left_reports(release)):
        if states:
            reports = reports.filter(state__in=list(states))
        if missing_in_stable:
            reports = reports.filter(Exists(StableSeries.objects.filter(report=OuterRef("pk"), fixed_in="")))
        sections.append(_rows(reports))
    return Table(*sections)


def _rows(reports: QuerySet[Report]) -> tuple[Row, ...]:
    headlines = Finding.objects.filter(headline=True).select_related("metric", "scenario", "machine")
    chosen = reports.select_related("culprit").prefetch_related(Prefetch("findings", headlines, to_attr="headlines"))
    rows = [_row(report) for report in chosen.order_by(F("reported_at").desc(nulls_last=True), "pk")[:LIMIT]]
    return tuple(sorted(rows, key=lambda row: row.indicator))


def _row(report: Report) -> Row:
    headline: Finding | None = next(iter(report.headlines), None)  # type: ignore[attr-defined]
    return Row(
        indicator=headline.metric.name if headline else "",
        report=str(report),
        sha=report.culprit.sha,
        scenario=tuple(headline.scenario.params.items()) if headline else (),
        machine=headline.machine.name if headline else "",
        base=headline.base if headline else "",
        status=report.status,
        state=report.state,
        verdict=report.verdict,
    )
