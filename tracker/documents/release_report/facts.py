"""What a release report is made of, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.documents.triage_table import PrintedRow
from tracker.domain.events import Verdict
from tracker.domain.kernel_comparison import Box, ComparisonLine


@dataclass(frozen=True, slots=True)
class HighlightData:
    """A report with a section of its own. `change_pct`: plus is better; `landing`: "" while it is not merged."""

    sha: str
    title: str
    branch: str
    report: str
    indicator: str
    suite: str
    change_pct: float | None
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
    """A parameter explained."""

    classification: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Of a table; `unknown`: whose direction nobody knows."""

    regressions: int
    improvements: int
    unknown: int


def counts_of(rows: Sequence[PrintedRow]) -> Counts:
    """What a table holds, counted from its rows and from nothing else."""
    verdicts = [row.verdict for row in rows]
    return Counts(
        verdicts.count(Verdict.REGRESSION), verdicts.count(Verdict.IMPROVEMENT), verdicts.count(Verdict.UNKNOWN)
    )


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """`kernel` and `base`: the kernels of the comparison, "" where none was measured; `prose`: what people wrote, by
    the name of its place; `suites`: descriptions by name.
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
    boxes: Sequence[Box]
    prose: Mapping[str, str]
