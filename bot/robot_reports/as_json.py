"""A robot report as a JSON object: the field `report` of `explain` (DESIGN section 5)."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from bot.mail.message import ParsedMail
from bot.mail.patches import answered_posting, is_answer
from bot.robot_reports.report import clean_title
from bot.robot_reports.tables.impact_box import Impact
from bot.robot_reports.tables.table import ReportRow, ReportTable, Value
from bot.robot_reports.value import RobotReport

Json = dict[str, Any]


def report_json(report: RobotReport, mail: ParsedMail, *, rows: bool = False) -> Json:
    """Return every field of a report, null if it is missing. `rows`: include the rows of each table."""
    return {
        **_mail(report, mail),
        **_commit(report),
        **_change(report),
        **_test(report),
        **_tables(report, rows),
        "additional": [
            _impact(impact, found) for impact, found in zip(report.additional, report.impact_rows, strict=True)
        ],
        "n_additional_impact": len(report.additional),
        "rechecks": [
            {"state": each.what, "ref": each.ref, "ref_text": each.ref, "sha": each.sha} for each in report.rechecks
        ],
        "rechecks_other": list(report.rechecks_other) or None,
        "reported_by": report.tags.reported_by or None,
        "closes": report.tags.closes or None,
        "link_tag": report.tags.link or None,
        "regzbot": report.tags.regzbot or None,
        "artifacts_url": report.tags.artifacts_url or None,
        "preamble": report.preamble or None,
        "n_ascii_plots": report.plots,
        "flags": list(_flags(report)),
        "unsure": list(report.unsure),
    }


def _mail(report: RobotReport, mail: ParsedMail) -> Json:
    return {
        "form": "reply-to-patch" if is_answer(mail.subject) else "report",
        "patch_subject": report.origin.patch_subject or answered_posting(mail.subject) or None,
        "recipients": sorted({each.email for each in mail.recipients}),
        "charset": mail.charset or None,
        "attachments": [each.filename for each in mail.attachments if each.filename],
    }


def _commit(report: RobotReport) -> Json:
    subject, origin = report.subject, report.origin
    return {
        "culprit": report.culprit,
        "short_sha": report.culprit[:10],
        "culprit_title": report.culprit_title,
        "commit_subject_clean": clean_title(report),
        "list_tag": subject.list_tag or None,
        "subject_prefix": subject.prefix or None,
        "tree": subject.tree or None,
        "branch": subject.branch or None,
        "subsystem": subject.subsystem or None,
        "repo_url": origin.repo_url or None,
        "repo_branch": origin.repo_branch or None,
        "patch_url": origin.patch_url or None,
        "base_url": origin.base_url or None,
        "base_branch": origin.base_branch or None,
        "patch_link": origin.patch_link or None,
    }


def _change(report: RobotReport) -> Json:
    return {
        "metric": report.metric,
        "verdict": report.verdict,
        "percent_text_subject": report.subject.percent or None,
        "percent_text_body": report.percent,
        "change_pct": report.change_pct,
        "change_pct_raw": report.change_pct_raw,
        "metric_direction": report.direction or None,
        "old": _side(report.old),
        "new": _side(report.new),
        "headline": {**_row(report.row), "table": 0} if report.row else None,
    }


def _test(report: RobotReport) -> Json:
    parts = report.machine_parts
    return {
        "suite": report.suite,
        "config": report.test.config or None,
        "compiler": report.test.compiler or None,
        "test_url": report.test.test_url or None,
        "machine": report.test.machine or None,
        "machine_parsed": {name: value or None for name, value in asdict(parts).items()},
        "parameters": dict(report.test.parameters),
        "tbox_group": report.machine or None,
    }


def _tables(report: RobotReport, rows: bool) -> Json:
    head = report.tables[0] if report.tables else None
    parent, bad = head.commits if head else (None, None)
    return {
        "axes": dict(head.axes) if head else None,
        "parent": report.parent or None,
        "parent_sha16": report.parent or None,
        "parent_is_tag": bool(report.base),
        "parent_short": (parent.name or None) if parent else None,
        "parent_subject": (parent.title or None) if parent else None,
        "bad_short": (bad.name or None) if bad else None,
        "bad_subject": (bad.title or None) if bad else None,
        "n_tables": len(report.tables),
        "n_rows_first_table": len(head.rows) if head else 0,
        "n_rows": sum(len(table.rows) for table in report.tables),
        "n_fail_rows": sum(len(table.fails) for table in report.tables),
        "tables": [_table(table, rows) for table in report.tables],
    }


def _table(table: ReportTable, rows: bool) -> Json:
    fields: Json = {
        "axes": dict(table.axes),
        "machine_line": table.machine_line or None,
        "n_rows": len(table.rows),
        "n_fails": len(table.fails),
    }
    if rows:
        fields |= {"rows": [_row(row) for row in table.rows], "fails": [asdict(fail) for fail in table.fails]}
    return fields


def _impact(impact: Impact, found: tuple[ReportTable, ReportRow] | None) -> Json:
    return {
        "testcase": impact.suite,
        "metric": impact.metric,
        "percent_text": impact.percent,
        "verdict": impact.verdict,
        "change_pct": impact.change_pct,
        "machine": impact.machine,
        "parameters": dict(impact.parameters),
        "tbox_group": (found[0].axis("tbox_group") or None) if found else None,
        "row": _row(found[1]) if found else None,
    }


def _row(row: ReportRow) -> Json:
    return {
        "metric": row.name,
        "old": _finite(row.old.mean),
        "old_stddev_pct": row.old.stddev_pct,
        "change": row.change_value,
        "change_is_pct": row.change.endswith("%"),
        "change_text": row.change,
        "new": _finite(row.new.mean),
        "new_stddev_pct": row.new.stddev_pct,
    }


def _side(value: Value | None) -> Json | None:
    return {"mean": _finite(value.mean), "stddev_pct": value.stddev_pct} if value else None


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold, or None: a table may print "nan" and "inf"."""
    return value if math.isfinite(value) else None


def _flags(report: RobotReport) -> list[str]:
    """Return the names of oddities that readers of reports trip over."""
    flags = {
        "hand-written-preamble": report.preamble,
        "text-between-noticed-and-commit": report.between,
        "parent-is-release-tag": report.base,
    }
    return [name for name, present in flags.items() if present]
