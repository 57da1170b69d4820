"""Find and parse the performance report in a mail of the kernel test robot: it is recognised by its body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bot.mail.message import ParsedMail
from bot.mail.patches import bare_title
from bot.robot_reports.claim import chosen, find_claims
from bot.robot_reports.environment import find_testing
from bot.robot_reports.inconsistencies import inconsistencies_of
from bot.robot_reports.origin import find_origin
from bot.robot_reports.subject import read_subject
from bot.robot_reports.tables.impact_box import Impact, find_impacts
from bot.robot_reports.tables.table import ReportRow, ReportTable, find_tables
from bot.robot_reports.tags import find_tags
from bot.robot_reports.value import ReportRecheck, RobotReport

_IN_BRACKETS = re.compile(r"^[ \t]{0,8}\[(.{1,300})\][ \t]*$", re.M)
_RECHECK = re.compile(r"(?P<what>[A-Za-z][A-Za-z ]{2,40}?)\s+on\s+(?P<ref>\S.{0,80}?)\s+(?P<sha>[0-9a-f]{7,40})\s*")
_COMMIT_ABOVE = re.compile(r"^[ \t]{0,8}commit:?[ \t]+([0-9a-f]{12,40})\b", re.M | re.I)
_GREETING = re.compile(r"\s*(?:Greetings?|Hello|Hi)[,!.]?\s*\Z|\s*FYI,?\s*\Z")
_PLOT_EDGE = re.compile(r"^[ \t]*[-\d.e+]{0,12}[ ]?[+|]-{30}[-+|]*[ \t]*$", re.M)
_MAX_LINE = 1000  # letters; the longest line of a report has 235 (seen in 2020-2025 reports)


def find_report(mail: ParsedMail) -> RobotReport | None:
    """Return the report in a mail, or None. The caller checks that the sender is a robot that we follow.

    The sentence "noticed a N% regression of METRIC" must be unquoted, with a `commit:` line below it.
    """
    text = "\n".join([line[:_MAX_LINE] for line in mail.text.split("\n")])
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
    report = RobotReport(
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
    return replace(report, inconsistencies=inconsistencies_of(report, one_claim))


def _rechecks(prose: Sequence[str]) -> tuple[tuple[ReportRecheck, ...], tuple[str, ...]]:
    """Return the rechecks on later heads, and the other bracketed lines."""
    bracketed = _IN_BRACKETS.findall("\n".join(prose))
    read = [(_RECHECK.fullmatch(each), each) for each in bracketed]
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
    parameters = set(impact.parameters)
    found = [
        (table.machine_line.endswith(impact.machine), -len(table.axes), -number, table, row)
        for number, table in enumerate(tables)
        if parameters <= set(table.axes) and (row := table.row(impact.metric))
    ]
    best = max(found, key=lambda each: each[:3], default=None)  # on that machine, with the fewest other axes
    return (best[3], best[4]) if best else None


def clean_title(report: RobotReport) -> str:
    """Return the culprit's title without "[PATCH v2 1/3]"."""
    return bare_title(report.culprit_title)
