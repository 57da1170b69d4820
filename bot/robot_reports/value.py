"""A robot's report as a value: all its fields, and the inconsistencies found in it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.robot_reports.environment import Testing
from bot.robot_reports.machine import MachineParts, machine_parts
from bot.robot_reports.origin import Origin
from bot.robot_reports.subject import ReportSubject
from bot.robot_reports.tables.impact_box import Impact
from bot.robot_reports.tables.table import ReportRow, ReportTable, Value, is_sha
from bot.robot_reports.tags import Tags


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """An inconsistency: a code and its detail. `unsure`: culprit or metric may be wrong, so an operator must check."""

    code: str
    about: str = ""
    unsure: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.about}" if self.about else self.code


@dataclass(frozen=True, slots=True)
class ReportRecheck:
    """What the robot saw on a later head: "still regression", "test failed"."""

    what: str
    ref: str
    sha: str


@dataclass(frozen=True, slots=True)
class RobotReport:
    """The contents of a report. `change_pct`: plus is better; `change_pct_raw`: the metric's own change."""

    subject: ReportSubject
    culprit: str
    culprit_title: str
    metric: str
    verdict: str
    percent: str  # as printed in the sentence
    change_pct: float
    change_pct_raw: float
    test: Testing
    row: ReportRow | None  # of the metric, in the first table
    additional: tuple[Impact, ...]
    impact_rows: tuple[tuple[ReportTable, ReportRow] | None, ...]  # for each of `additional`
    unread_impacts: tuple[str, ...]
    rechecks: tuple[ReportRecheck, ...]
    rechecks_other: tuple[str, ...]  # other bracketed lines, as written
    origin: Origin
    tags: Tags
    between: str  # what a person wrote between the sentence and the commit
    preamble: str  # what a person wrote above the robot's greeting
    other_commits: tuple[str, ...]  # named in the preamble
    plots: int  # ASCII plots below the tables, until 2021
    tables: tuple[ReportTable, ...]
    head: ReportTable | None  # the first of `tables`, or else one pasted by a person
    inconsistencies: tuple[Inconsistency, ...] = ()

    @property
    def old(self) -> Value | None:
        return self.row.old if self.row else None

    @property
    def new(self) -> Value | None:
        return self.row.new if self.row else None

    @property
    def suite(self) -> str:
        return self.test.testcase or self.metric.split(".")[0]

    @property
    def machine(self) -> str:
        """The lab's name of the machine ("lkp-csl-2sp5"), "" if no table names it."""
        return self.head.axis("tbox_group") if self.head else ""

    @property
    def machine_parts(self) -> MachineParts:
        return machine_parts(self.test.machine)

    @property
    def parent(self) -> str:
        """The abbreviated sha of the parent, "" if the table names a tag."""
        return "" if self.base or not self.head else self.head.parent

    @property
    def base(self) -> str:
        """The tag that it was compared with, "" if it was a commit."""
        return self.head.parent if self.head and not is_sha(self.head.parent) else ""

    @property
    def direction(self) -> str:
        """Which direction is better according to the robot, "" if no row shows how the metric moved."""
        moved = self.row.change_value if self.row else None
        if not moved:
            return ""
        return "higher" if (moved > 0) == (self.verdict == "improvement") else "lower"

    @property
    def unsure(self) -> tuple[str, ...]:
        """Why an operator must check the report first; empty if its culprit and metric are clear."""
        return tuple(str(each) for each in self.inconsistencies if each.unsure)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(str(each) for each in self.inconsistencies)
