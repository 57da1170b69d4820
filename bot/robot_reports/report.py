"""A performance report of the kernel test robot, recognised by its body and parsed into one value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.mail.message import ParsedMail
from bot.mail.patches import bare_title
from bot.robot_reports.claim import chosen, find_claims
from bot.robot_reports.impact_box import Impact, find_impacts
from bot.robot_reports.inconsistencies import Inconsistency, inconsistencies_of
from bot.robot_reports.machine import MachineParts, machine_parts
from bot.robot_reports.origin import Origin, find_origin
from bot.robot_reports.subject import ReportSubject, read_subject
from bot.robot_reports.table import ReportRow, ReportTable, Value, find_tables, is_sha
from bot.robot_reports.tags import Tags, find_tags
from bot.robot_reports.test_setup import Testing, find_testing

_IN_BRACKETS = re.compile(r"^[ \t]{0,8}\[(.{1,300})\][ \t]*$", re.M)
_RECHECK = re.compile(r"(?P<what>[A-Za-z][A-Za-z ]{2,40}?)\s+on\s+(?P<ref>\S.{0,80}?)\s+(?P<sha>[0-9a-f]{7,40})\s*")
_COMMIT_ABOVE = re.compile(r"^[ \t]{0,8}commit:?[ \t]+([0-9a-f]{12,40})\b", re.M | re.I)
_GREETING = re.compile(r"\s*(?:Greetings?|Hello|Hi)[,!.]?\s*\Z|\s*FYI,?\s*\Z")
_PLOT_EDGE = re.compile(r"^[ \t]*[-\d.e+]{0,12}[ ]?[+|]-{30,}[-+|]*[ \t]*$", re.M)


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
    doubts: tuple[Inconsistency, ...] = ()

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
        moved = self.row.moved if self.row else None
        if not moved:
            return ""
        return "higher" if (moved > 0) == (self.verdict == "improvement") else "lower"

    @property
    def unsure(self) -> tuple[str, ...]:
        """Why an operator must check the report first; empty if its culprit and metric are clear."""
        return tuple(str(doubt) for doubt in self.doubts if doubt.unsure)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(str(doubt) for doubt in self.doubts)


def find_report(mail: ParsedMail) -> RobotReport | None:
    """Return the report in a mail, or None. The caller checks that the sender is a robot that we follow.

    The sentence "noticed a N% regression of METRIC" must be unquoted, with a `commit:` line below it.
    """
    text = mail.text
    claims = find_claims(text)
    if not claims:
        return None
    subject = read_subject(mail.subject)
    claim, one_claim = chosen(claims, subject)
    below = text[claim.end :]  # a person's text above it may hold tables as well
    prose = below.split("\nDetails are as below", 1)[0].split("\n")
    test = find_testing(prose)
    impacts, unread_impacts = find_impacts(prose)
    values = [value for each in (test.parameters, *(impact.parameters for impact in impacts)) for _, value in each]
    found = tuple(find_tables(below.split("\n"), values))
    # A table pasted by a person has no axes above it.
    tables = tuple(each for each in found if each.axes_text)
    head = next(iter(tables or found), None)
    row = head.row(claim.metric) if head else None
    percent = float(claim.percent)
    above = text[: claim.start]
    rechecks, others = _rechecks(prose)
    told = RobotReport(
        subject=subject,
        culprit=claim.culprit,
        culprit_title=claim.title,
        metric=claim.metric,
        verdict=claim.verdict,
        percent=claim.percent,
        change_pct=abs(percent) if claim.verdict == "improvement" else -abs(percent),
        change_pct_raw=_raw_change(row, percent),
        test=test,
        row=row,
        additional=impacts,
        impact_rows=tuple(_impact_row(tables, each) for each in impacts),
        unread_impacts=unread_impacts,
        rechecks=rechecks,
        rechecks_other=others,
        origin=find_origin(prose),
        tags=find_tags(below),
        between=claim.between,
        preamble=_preamble(above),
        other_commits=tuple(sha for sha in _COMMIT_ABOVE.findall(above) if not claim.culprit.startswith(sha)),
        plots=len(_PLOT_EDGE.findall(below)) // 2,
        tables=tables,
        head=head,
    )
    return replace(told, doubts=inconsistencies_of(told, one_claim))


def _rechecks(prose: Sequence[str]) -> tuple[tuple[ReportRecheck, ...], tuple[str, ...]]:
    """Return the rechecks on later heads, and the other bracketed lines."""
    told = _IN_BRACKETS.findall("\n".join(prose))
    read = [(_RECHECK.fullmatch(each), each) for each in told]
    return (
        tuple(ReportRecheck(found["what"], found["ref"], found["sha"]) for found, _ in read if found),
        tuple(each for found, each in read if not found),
    )


def _preamble(above: str) -> str:
    """Return the lines above the greeting, which has its own line or begins the sentence."""
    kept = [line for line in above.split("\n") if not _GREETING.match(line)]
    return "\n".join(kept).strip()


def _raw_change(row: ReportRow | None, percent: float) -> float:
    """Return the change printed in the table, or else the sentence's change with the table's sign."""
    if row is None:
        return percent
    if row.change_pct is not None:
        return row.change_pct
    return -abs(percent) if row.change.startswith("-") else abs(percent)


def _impact_row(tables: Sequence[ReportTable], impact: Impact) -> tuple[ReportTable, ReportRow] | None:
    """Return the table of an additional impact, whose axes include its parameters, and its row there."""
    wanted = set(impact.parameters)
    found = [
        (table.machine_line.endswith(impact.machine), -len(table.axes), -number, table, row)
        for number, table in enumerate(tables)
        if wanted <= set(table.axes) and (row := table.row(impact.metric))
    ]
    best = max(found, key=lambda each: each[:3], default=None)  # on that machine, with the fewest other axes
    return (best[3], best[4]) if best else None


def clean_title(report: RobotReport) -> str:
    """Return the culprit's title without "[PATCH v2 1/3]"."""
    return bare_title(report.culprit_title)
