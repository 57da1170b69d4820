"""The rows of a release's triage table: what was merged in its cycle, and what was reported from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db.models import Exists, F, Prefetch, QuerySet

from tracker.documents.triage_table import LIMIT, PrintedRow, PrintedTable
from tracker.models import Finding, Release, Report
from tracker.pages.triage import rows as lines
from tracker.pages.triage.filters import NAMES, NOT
from tracker.pages.triage.question import TriageQuery
from tracker.services.report_summary import clipped

BOTH = 50  # rows of each of two sections
ONE = 100  # of a section alone


@dataclass(frozen=True, slots=True)
class TriageSection:
    """A page of a section. `after`, `before`: the cursors of the pages around it, "" at an end."""

    name: str
    heading: str
    rows: Sequence[lines.TriageRow]
    group: str
    after: str
    before: str

    @property
    def groups(self) -> Iterator[tuple[str, list[lines.TriageRow]]]:
        """Rows under the value that they share; all under "" where none is asked for."""
        return ((name, list(some)) for name, some in groupby(self.rows, key=self._name))

    def _name(self, row: lines.TriageRow) -> str:
        return str(getattr(row, self.group) or "none told").replace("_", " ") if self.group else ""


HEADINGS = {"merged": "Merged in this release", "shifted": "Shift-left: reported from other trees"}


def sections(version: str, question: TriageQuery, now: datetime) -> list[TriageSection]:
    """Both sections of a release, or the one that is asked for: a query each."""
    names = [question.section] if question.section else list(HEADINGS)
    size = ONE if question.section else BOTH
    return [
        section(name, HEADINGS[name], Report.objects.filter(**{name: version}), question, now, size) for name in names
    ]


def section(
    name: str, heading: str, reports: QuerySet[Report], question: TriageQuery, now: datetime, size: int = ONE
) -> TriageSection:
    """A page of these reports, in one query. What fits is looked for in an index; the rows behind it are then read."""
    order = question.keys.turned() if question.backwards else question.keys
    fitting = question.filtered(reports)
    if (values := question.cursor()) is not None:
        fitting = fitting.filter(order.beyond(values))
    chosen = order.sorted(fitting).values("pk")[: size + 1]
    found = list(order.sorted(Report.objects.filter(pk__in=chosen)).values(*lines.COLUMNS))
    more, found = len(found) > size, found[:size]
    if question.backwards:
        found.reverse()
    forth = "before" in question.place if question.backwards else more
    back = more if question.backwards else "after" in question.place
    return TriageSection(
        name,
        heading,
        [lines.row_of(told, now) for told in found],
        question.group,
        question.keys.cursor(found[-1]) if found and forth else "",
        question.keys.cursor(found[0]) if found and back else "",
    )


def chosen(keys: Iterable[int], now: datetime) -> list[lines.TriageRow]:
    """The rows of some reports, after they have changed."""
    found = Report.objects.filter(pk__in=set(keys)).order_by("pk").values(*lines.COLUMNS)
    return [lines.row_of(told, now) for told in found]


def known(asked: Mapping[str, tuple[str, ...]]) -> dict[str, Exists]:
    """Whether any report has the names that are asked for, as annotations of a query that is made anyway."""
    return {
        f"known_{number}": Exists(Report.objects.filter(**{name: clipped(value)}))
        for number, (name, value) in enumerate(_names(asked))
    }


def misspelt(asked: Mapping[str, tuple[str, ...]], answer: object) -> list[str]:
    """Which of them no report has, by what `known` found out."""
    told = enumerate(_names(asked))
    return [f"{name}: no report has {value[:80]!r}" for at, (name, value) in told if not getattr(answer, f"known_{at}")]


def _names(asked: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(name, value) for name in NAMES for each in (name, f"{name}{NOT}") for value in asked.get(each, ())]


def table(release: Release, states: Iterable[str] = (), *, missing_in_stable: bool = False) -> PrintedTable:
    """Both sections with all that they hold, for a terminal; of these states, or what a stable series has unfixed."""
    found = []
    for reports in (Report.objects.filter(merged=release.version), Report.objects.filter(shifted=release.version)):
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
