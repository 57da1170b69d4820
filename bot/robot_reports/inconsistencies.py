"""Inconsistencies in a robot's report: where it contradicts itself, or lacks what it should have. Pure.

To add a check: write a generator, and call it in `inconsistencies_of`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.robot_reports.tables.table import ReportRow, ReportTable, is_sha
from bot.robot_reports.value import Inconsistency, RobotReport

ROUNDING = 0.11  # percentage points; both numbers are printed with one decimal
MOST = 50


def inconsistencies_of(report: RobotReport, one_claim: bool) -> tuple[Inconsistency, ...]:
    """Return the inconsistencies in a report. `one_claim`: it is clear which of its claims it is about."""
    every = (_about_culprit(report, one_claim), _about_metric(report), _about_test(report), _about_impacts(report))
    tables = (
        inconsistency for number, table in enumerate(report.tables) for inconsistency in _about_table(number + 1, table)
    )
    found = [inconsistency for group in (*every, tables) for inconsistency in group]
    return tuple(dict.fromkeys(found[:MOST]))


def _about_culprit(report: RobotReport, one_claim: bool) -> Iterator[Inconsistency]:
    if not one_claim:
        yield Inconsistency("two_claims", "the mail reports more than one commit", unsure=True)
    if report.subject.sha and not report.culprit.startswith(report.subject.sha):
        yield Inconsistency("culprit_disagrees", f"the subject names {report.subject.sha}", unsure=True)
    name = report.tables[0].commits[1].name if report.tables else ""
    if is_sha(name) and not report.culprit.startswith(name):
        yield Inconsistency("culprit_disagrees", f"the table names {name}", unsure=True)


def _about_metric(report: RobotReport) -> Iterator[Inconsistency]:
    subject = report.subject
    if subject.metric and subject.metric != report.metric:
        yield Inconsistency("metric_disagrees", f"the subject names {subject.metric}", unsure=True)
    if subject.verdict and subject.verdict != report.verdict:
        yield Inconsistency("verdict_disagrees", f"the subject says {subject.verdict}", unsure=True)
    if report.row is None:
        # Only the sentence names the metric, although there is a table that should.
        yield Inconsistency("no_headline_row", unsure=bool(report.tables) and subject.metric != report.metric)
    elif (gap := _gap(report.row, report.change_pct)) is not None:
        yield Inconsistency("headline_disagrees", f"{report.metric} {report.change_pct:g}%, in its table {gap}")


def _about_test(report: RobotReport) -> Iterator[Inconsistency]:
    if not report.tables:
        yield Inconsistency("no_table")
    if not report.test.machine:
        yield Inconsistency("no_machine")
    if not report.test.testcase:
        yield Inconsistency("no_testcase")
    if report.other_commits:
        yield Inconsistency("other_commit_above", ", ".join(sha[:10] for sha in report.other_commits[:5]))


def _about_impacts(report: RobotReport) -> Iterator[Inconsistency]:
    for text in report.unread_impacts:
        yield Inconsistency("impact_unread", text[:100])
    if not report.tables:
        return
    for impact, table_and_row in zip(report.additional, report.impact_rows, strict=True):
        if table_and_row is None:
            yield Inconsistency("impact_without_row", impact.metric)
        elif (gap := _gap(table_and_row[1], impact.change_pct)) is not None:
            yield Inconsistency("impact_disagrees", f"{impact.metric} {impact.change_pct:g}%, in its table {gap}")


def _gap(row: ReportRow, change_pct: float) -> str | None:
    """Return the change printed in a row if it differs from the claimed one, else None. Signs are ignored: the row's
    is the metric's own.
    """
    printed = row.change_pct
    if printed is None or abs(abs(printed) - abs(change_pct)) <= ROUNDING:
        return None
    return row.change


def _about_table(number: int, table: ReportTable) -> Iterator[Inconsistency]:
    if not table.axes:
        yield Inconsistency("axes_unread", f"table {number}")
    if table.unread:
        first = table.unread[0].strip()[:60]
        yield Inconsistency("rows_unread", f"{len(table.unread)} of table {number}, first {first!r}")
    if not table.is_complete:
        yield Inconsistency("cut_table", f"table {number} is truncated")
