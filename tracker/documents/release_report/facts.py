"""The data of a release report, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.documents.triage_table import PrintedRow
from tracker.domain.events import Verdict
from tracker.domain.kernel_comparison import Box, ComparisonLine, Test


@dataclass(frozen=True, slots=True)
class HighlightData:
    """A report highlight. `change`: the metric's own, in per cent; `landing`: "" while it is not merged."""

    sha: str
    title: str
    branch: str
    report: str
    indicator: str
    suite: str
    change: float | None
    verdict: str
    base: str
    landing: str
    scenario: tuple[tuple[str, str], ...]
    machine: str
    status: str
    heading: str
    is_merged: bool


@dataclass(frozen=True, slots=True)
class ParameterData:
    """A parameter, explained."""

    classification: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a table; `unknown`: changes of unknown direction."""

    regressions: int
    improvements: int
    unknown: int


def counts_of(rows: Sequence[PrintedRow]) -> Counts:
    """Return the counts of a table, from its rows and nothing else."""
    verdicts = [row.verdict for row in rows]
    return Counts(
        verdicts.count(Verdict.REGRESSION), verdicts.count(Verdict.IMPROVEMENT), verdicts.count(Verdict.UNKNOWN)
    )


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """`kernel` and `base`: the kernels that are compared, "" if not measured; `prose`: what people wrote, by section;
    `suites`: descriptions by name.
    """

    lab: str
    version: str
    previous: str
    released_at: datetime | None
    as_of: datetime
    merged: Sequence[PrintedRow]
    shift_left: Sequence[PrintedRow]
    details: Sequence[HighlightData]
    parameters: Sequence[ParameterData]
    suites: Mapping[str, str]
    kernel: str
    base: str
    lines: Sequence[ComparisonLine]
    curves: Mapping[Test, tuple[str, str]]  # the curve of each test that has one: its heights and its page
    boxes: Sequence[Box]
    prose: Mapping[str, str]
