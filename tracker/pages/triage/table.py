"""The rows of a release's triage table: reports merged in its cycle, and reports from other trees (shift-left)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Exists, F, OuterRef, Prefetch, QuerySet, Subquery

from tracker.documents.triage_table import LIMIT, PrintedRow, PrintedTable
from tracker.models import Finding, Release, ReleaseCandidate, Report
from tracker.pages.report_json import directions, report_json
from tracker.pages.triage import rows as lines
from tracker.pages.triage.counts import Counts
from tracker.pages.triage.filters import NAMES, NOT
from tracker.pages.triage.query import SECTIONS, TriageQuery
from tracker.services.reports.report_summary import clipped

BOTH = 50  # rows per section when both are shown
ONE = 100  # rows of a single section


@dataclass(frozen=True, slots=True)
class TriageSection:
    """A page of a section. `after`, `before`: the cursors of the next and previous page, "" if there is none."""

    name: str
    heading: str
    rows: Sequence[lines.TriageRow]
    group: str
    after: str
    before: str
    open: int | None = None
    closed: int | None = None

    @property
    def groups(self) -> Iterator[tuple[str, list[lines.TriageRow]]]:
        """Yield the rows grouped by their common value; one group named "" if no grouping was requested."""
        return ((name, list(members)) for name, members in groupby(self.rows, key=self._name))

    def _name(self, row: lines.TriageRow) -> str:
        return str(getattr(row, self.group) or "none").replace("_", " ") if self.group else ""


HEADINGS = {"merged": "Merged in this release", "shifted": "Shift-left: reported from other trees"}


def sections(version: str, query: TriageQuery, now: datetime) -> list[TriageSection]:
    """Return both sections of a release, or only the requested one: one query each."""
    names = [query.section] if query.section else list(HEADINGS)
    size = ONE if query.section else BOTH
    return [
        section(name, HEADINGS[name], Report.objects.filter(**{SECTIONS[name]: version}), query, now, size)
        for name in names
    ]


def counted(sections: Iterable[TriageSection], counts: Counts) -> list[TriageSection]:
    """Return the sections with how many of their reports are open and closed, whatever the filters."""
    totals = {name: {each.value: each.number for each in counts.get(name, ())} for name in HEADINGS}
    return [
        replace(each, open=totals[each.name].get("open", 0), closed=totals[each.name].get("closed", 0))
        for each in sections
    ]


def section(
    name: str, heading: str, reports: QuerySet[Report], query: TriageQuery, now: datetime, size: int = ONE
) -> TriageSection:
    """Return a page of these reports, in one query: the keys are found in an index, then only their rows are read."""
    order = query.keys.reversed() if query.backwards else query.keys
    matching = query.filtered(reports)
    if (values := query.cursor()) is not None:
        matching = matching.filter(order.after(values))
    chosen = order.sorted(matching).values("pk")[: size + 1]
    found = list(order.sorted(Report.objects.filter(pk__in=chosen)).values(*lines.COLUMNS))
    more, found = len(found) > size, found[:size]
    if query.backwards:
        found.reverse()
    has_next = "before" in query.position if query.backwards else more
    has_previous = more if query.backwards else "after" in query.position
    return TriageSection(
        name,
        heading,
        [lines.row_of(row, now) for row in found],
        query.group,
        query.keys.cursor(found[-1]) if found and has_next else "",
        query.keys.cursor(found[0]) if found and has_previous else "",
    )


def exported(version: str, query: TriageQuery, absolute: Callable[[str], str]) -> dict[str, list[dict[str, Any]]]:
    """Return both sections as values, in the order that the query asks for; at most LIMIT rows each."""
    known = directions()
    found = {}
    for name, column in (("merged", "merged_release"), ("shift_left", "shift_left_release")):
        matching = query.filtered(Report.objects.filter(**{column: version})).select_related("culprit", "tree")
        found[name] = [report_json(each, known, absolute) for each in query.keys.sorted(matching)[:LIMIT]]
    return found


def listed(reports: QuerySet[Report], query: TriageQuery, absolute: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return reports as values, in the order that the query asks for; at most LIMIT."""
    known = directions()
    found = query.keys.sorted(query.filtered(reports).select_related("culprit", "tree"))
    return [report_json(each, known, absolute) for each in found[:LIMIT]]


def changed(seen: Mapping[int, int]) -> list[int]:
    """Return which of these reports have another revision than the one that was seen."""
    now = Report.objects.filter(pk__in=seen).order_by("pk").values_list("pk", "revision")
    return [pk for pk, revision in now if revision != seen[pk]]


def chosen(keys: Iterable[int], now: datetime) -> list[lines.TriageRow]:
    """Return the rows of these reports as they are now."""
    found = Report.objects.filter(pk__in=set(keys)).order_by("pk").values(*lines.COLUMNS)
    return [lines.row_of(row, now) for row in found]


def candidate_annotations() -> dict[str, Subquery]:
    """Return annotations with the newest -rc of a release and its time, to add to an existing query."""
    newest = ReleaseCandidate.objects.filter(release=OuterRef("pk")).order_by("-number")
    return {
        "candidate": Subquery(newest.values("number")[:1]),
        "candidate_at": Subquery(newest.values("tagged_at")[:1]),
    }


def name_annotations(active_filters: Mapping[str, tuple[str, ...]]) -> dict[str, Exists]:
    """Return annotations that tell whether any report has the requested names, to add to an existing query."""
    return {
        f"known_{number}": Exists(Report.objects.filter(**{name: clipped(value)}))
        for number, (name, value) in enumerate(_names(active_filters))
    }


def unknown_names(active_filters: Mapping[str, tuple[str, ...]], annotated: object) -> list[str]:
    """Return an error for each name that no report has, according to the annotations of `name_annotations`."""
    names = enumerate(_names(active_filters))
    return [
        f"{name}: no report has {value[:80]!r}" for at, (name, value) in names if not getattr(annotated, f"known_{at}")
    ]


def _names(active_filters: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [
        (name, value) for name in NAMES for each in (name, f"{name}{NOT}") for value in active_filters.get(each, ())
    ]


def table(release: Release, states: Iterable[str] = (), *, missing_in_stable: bool = False) -> PrintedTable:
    """Return both sections in full; only these states if given, or only reports whose fix is missing in stable."""
    found = []
    for reports in (
        Report.objects.filter(merged_release=release.version),
        Report.objects.filter(shift_left_release=release.version),
    ):
        if states:
            reports = reports.filter(state__in=list(states))
        if missing_in_stable:
            reports = reports.filter(lacks_fix=True)
        found.append(_rows(reports))
    return PrintedTable(*found)


def _rows(reports: QuerySet[Report]) -> tuple[PrintedRow, ...]:
    headlines = Finding.objects.filter(headline=True).select_related("metric", "scenario", "machine")
    chosen = reports.select_related("culprit").prefetch_related(Prefetch("findings", headlines, to_attr="headlines"))
    found = [_row(report) for report in chosen.order_by(F("reported_at").desc(nulls_last=True), "pk")[:LIMIT]]
    return tuple(sorted(found, key=lambda row: row.indicator))


def _row(report: Report) -> PrintedRow:
    headline: Finding | None = next(iter(report.headlines), None)  # type: ignore[attr-defined]
    return PrintedRow(
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
