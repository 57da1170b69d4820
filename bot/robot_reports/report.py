"""A performance report by the kernel test robot, recognised by its body and read into one value."""

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
    """What a report says. `change_pct`: plus is better; `change_pct_raw`: the metric's own movement."""

    subject: ReportSubject
    culprit: str
    culprit_title: str
    metric: str
    verdict: str
    percent: str  # as the sentence prints it
    change_pct: float
    change_pct_raw: float
    test: Testing
    row: ReportRow | None  # of the metric, in the first table
    additional: tuple[Impact, ...]
    impact_rows: tuple[tuple[ReportTable, ReportRow] | None, ...]  # of each of `additional`
    unread_impacts: tuple[str, ...]
    rechecks: tuple[ReportRecheck, ...]
    rechecks_other: tuple[str, ...]  # lines in brackets beside them, as written
    origin: Origin
    tags: Tags
    between: str  # what a person wrote between the sentence and the commit
    preamble: str  # what a person wrote above the robot's greeting
    other_commits: tuple[str, ...]  # that he names there
    plots: int  # drawn in letters below the tables, until 2021
    tables: tuple[ReportTable, ...]
    head: ReportTable | None  # the first of them, or what stands for it
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
        """The lab's name of it ("lkp-csl-2sp5"), "" where no table tells."""
        return self.head.axis("tbox_group") if self.head else ""

    @property
    def machine_parts(self) -> MachineParts:
        return machine_parts(self.test.machine)

    @property
    def parent(self) -> str:
        """The first digits of the parent's sha, "" where the table names a tag."""
        return "" if self.base or not self.head else self.head.parent

    @property
    def base(self) -> str:
        """The tag that it was compared with, where it was no commit."""
        return self.head.parent if self.head and not is_sha(self.head.parent) else ""

    @property
    def direction(self) -> str:
        """Which way of the metric is better, by the robot's word; "" where no row shows which way it moved."""
        moved = self.row.moved if self.row else None
        if not moved:
            return ""
        return "higher" if (moved > 0) == (self.verdict == "improvement") else "lower"

    @property
    def unsure(self) -> tuple[str, ...]:
        """Why an operator has to look at it first; nothing where its culprit and its metric are clear."""
        return tuple(str(doubt) for doubt in self.doubts if doubt.unsure)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(str(doubt) for doubt in self.doubts)


def find_report(mail: ParsedMail) -> RobotReport | None:
    """The report in a mail, or None. Whether its sender is a robot that we follow is for the caller to ask.

    The sentence "noticed a N% regression of METRIC" must stand unquoted, and a `commit:` line below it.
    """
    text = mail.text
    claims = find_claims(text)
    if not claims:
        return None
    subject = read_subject(mail.subject)
    claim, one_claim = chosen(claims, subject)
    below = text[claim.end :]  # above it stands what a person wrote, tables and all
    prose = below.split("\nDetails are as below", 1)[0].split("\n")
    test = find_testing(prose)
    impacts, unread_impacts = find_impacts(prose)
    values = [value for each in (test.parameters, *(impact.parameters for impact in impacts)) for _, value in each]
    found = tuple(find_tables(below.split("\n"), values))
    # A table that a person pasted has no axes above it.
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
    """What was seen on later heads, and the lines in brackets that tell something else."""
    told = _IN_BRACKETS.findall("\n".join(prose))
    read = [(_RECHECK.fullmatch(each), each) for each in told]
    return (
        tuple(ReportRecheck(found["what"], found["ref"], found["sha"]) for found, _ in read if found),
        tuple(each for found, each in read if not found),
    )


def _preamble(above: str) -> str:
    """The lines above the greeting, which stands by itself or begins the sentence."""
    kept = [line for line in above.split("\n") if not _GREETING.match(line)]
    return "\n".join(kept).strip()


def _raw_change(row: ReportRow | None, percent: float) -> float:
    """The movement as the table prints it; where it prints none, the sentence's, by the table's sign."""
    if row is None:
        return percent
    if row.change_pct is not None:
        return row.change_pct
    return -abs(percent) if row.change.startswith("-") else abs(percent)


def _impact_row(tables: Sequence[ReportTable], impact: Impact) -> tuple[ReportTable, ReportRow] | None:
    """The table of a further impact, which has its parameters among its axes, and its row there."""
    wanted = set(impact.parameters)
    found = [
        (table.machine_line.endswith(impact.machine), -len(table.axes), -number, table, row)
        for number, table in enumerate(tables)
        if wanted <= set(table.axes) and (row := table.row(impact.metric))
    ]
    best = max(found, key=lambda each: each[:3], default=None)  # on that machine, with the fewest other axes
    return (best[3], best[4]) if best else None


def clean_title(report: RobotReport) -> str:
    """The culprit's title without "[PATCH v2 1/3]"."""
    return bare_title(report.culprit_title)
