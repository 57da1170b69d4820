"""Reading the robot's reports: each field against what a careful reader found in the real ones, a line a field."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bot.archive.mbox import read_mbox  # noqa: E402
from bot.ingest.robot_mail.box import Impact  # noqa: E402
from bot.ingest.robot_mail.report import RobotReport, clean_title, find_report, impact_row  # noqa: E402
from bot.ingest.robot_mail.table import Row, Table, count_rows  # noqa: E402
from bot.replies.mail import parse  # noqa: E402

SHARED = ROOT.parent / "shared" / "data"
CASES = ("reports-dev", "reports-in-patch-threads-dev")


def _blank(text: str) -> str | None:
    """Our "" is the data's null."""
    return text or None


def _impact(told: RobotReport, impact: Impact) -> dict[str, Any]:
    found = impact_row(told, impact)
    return {
        "testcase": impact.suite,
        "metric": impact.metric,
        "verdict": impact.verdict,
        "machine": impact.machine,
        "parameters": dict(impact.parameters),
        "change_pct": impact.change_pct,
        "tbox_group": found[0].axis("tbox_group") if found else None,
        "row": _row(found[1]) if found else None,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "metric": row.name,
        "old": row.old.mean,
        "old_stddev_pct": row.old.stddev_pct,
        "change_text": row.change,
        "new": row.new.mean,
        "new_stddev_pct": row.new.stddev_pct,
    }


def _table(told: RobotReport, table: Table) -> dict[str, Any]:
    rows, fails = count_rows(told.lines, table)
    return {"axes": dict(table.axes), "machine_line": _blank(table.machine_line), "n_rows": rows, "n_fails": fails}


# What we say of each field that the data names. Where a report has no table, the data has nulls.
FIELDS: dict[str, Callable[[RobotReport], Any]] = {
    "full_sha": lambda told: told.culprit,
    "commit_subject": lambda told: told.culprit_title,
    "commit_subject_clean": clean_title,
    "metric": lambda told: told.metric,
    "verdict": lambda told: told.verdict,
    "change_pct": lambda told: told.change_pct,
    "change_pct_raw": lambda told: told.change_pct_raw,
    "list_tag": lambda told: _blank(told.list_tag),
    "tree": lambda told: _blank(told.tree),
    "tree_branch": lambda told: _blank(told.branch),
    "subsystem": lambda told: _blank(told.subsystem),
    "repo_url": lambda told: _blank(told.origin.repo_url),
    "repo_branch": lambda told: _blank(told.origin.repo_branch),
    "patch_url": lambda told: _blank(told.origin.patch_url),
    "base_url": lambda told: _blank(told.origin.base_url),
    "base_branch": lambda told: _blank(told.origin.base_branch),
    "patch_link": lambda told: _blank(told.origin.patch_link),
    "testcase": lambda told: told.suite,
    "config": lambda told: _blank(told.config),
    "compiler": lambda told: _blank(told.compiler),
    "machine": lambda told: told.machine_text,
    "machine_parsed": lambda told: {
        "threads": told.machine_parts.threads,
        "sockets": told.machine_parts.sockets,
        "cpu": _blank(told.machine_parts.cpu),
        "codename": _blank(told.machine_parts.codename),
        "memory": _blank(told.machine_parts.memory),
    },
    "parameters": lambda told: dict(told.parameters),
    "test_url": lambda told: _blank(told.test_url),
    "tbox_group": lambda told: _blank(told.machine),
    "axes": lambda told: dict(told.tables[0].axes) if told.tables else None,
    "parent_short": lambda told: _blank(told.tables[0].commits[0].name if told.tables else ""),
    "parent_subject": lambda told: _blank(told.tables[0].commits[0].title if told.tables else ""),
    "bad_short": lambda told: _blank(told.tables[0].commits[1].name if told.tables else ""),
    "bad_subject": lambda told: _blank(told.tables[0].commits[1].title if told.tables else ""),
    "parent_sha16": lambda told: _blank(told.parent),
    "old_value": lambda told: told.old.mean if told.old else None,
    "old_stddev_pct": lambda told: told.old.stddev_pct if told.old else None,
    "new_value": lambda told: told.new.mean if told.new else None,
    "new_stddev_pct": lambda told: told.new.stddev_pct if told.new else None,
    "n_tables": lambda told: len(told.tables),
    "n_rows": lambda told: sum(count_rows(told.lines, table)[0] for table in told.tables),
    "n_fail_rows": lambda told: sum(count_rows(told.lines, table)[1] for table in told.tables),
    "n_additional_impact": lambda told: len(told.additional),
    "additional_impact": lambda told: [_impact(told, each) for each in told.additional],
    "n_ascii_plots": lambda told: told.plots,
    "flags": lambda told: ["hand-written-preamble"] if told.preamble else [],
    "tables": lambda told: [_table(told, each) for each in told.tables],
    "rechecks": lambda told: [(each.what, each.ref, each.sha) for each in told.rechecks],
    "reported_by": lambda told: _blank(told.tags.reported_by),
    "closes": lambda told: _blank(told.tags.closes),
    "link_tag": lambda told: _blank(told.tags.link),
    "artifacts_url": lambda told: _blank(told.tags.artifacts_url),
}


def _expected(field: str, value: Any) -> Any:
    if field == "rechecks":
        return [(each["state"], each["ref"], each["sha"]) for each in value]
    if field == "additional_impact":
        return [_without(each, "percent_text", "change", "change_is_pct") for each in value]
    if field == "flags":  # the others of the data's flags are no fields of ours
        return [each for each in value if each == "hand-written-preamble"]
    return " ".join(value.split()) if isinstance(value, str) else value


def _without(told: dict[str, Any], *names: str) -> dict[str, Any]:
    """A value of the data without what follows from the rest of it."""
    return {
        key: _without(value, *names) if isinstance(value, dict) else value
        for key, value in told.items()
        if key not in names
    }


def compared() -> Iterator[tuple[str, str, Any, Any]]:
    """Message-ID, field, what was expected and what was found, of every field of every report."""
    for case in CASES:
        expected = {each["message_id"]: each for each in json.loads((SHARED / f"{case}.json").read_text())}
        for raw in read_mbox(SHARED / f"{case}.mbox"):
            mail = parse(raw.raw)
            told = find_report(mail)
            for field, find in FIELDS.items():
                if (want := expected[mail.message_id]).keys() >= {field}:
                    found = find(told) if told else "no report"
                    yield mail.message_id, field, _expected(field, want[field]), _expected("", found)


def main() -> None:
    if not SHARED.is_dir():
        sys.exit(f"the real reports are not on this machine (expected in {SHARED})")
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for message_id, field, want, found in compared():
        asked[field] += 1
        right[field] += want == found
        if want != found and "-v" in sys.argv:
            print(f"{field} of {message_id}: expected {want!r}, found {found!r}")
    print(f"{'field':24}{'right':>7}{'asked':>7}{'%':>8}")
    for field in FIELDS:
        print(f"{field:24}{right[field]:7}{asked[field]:7}{100 * right[field] / max(1, asked[field]):8.1f}")
    print(f"{'all':24}{right.total():7}{asked.total():7}{100 * right.total() / max(1, asked.total()):8.1f}")


if __name__ == "__main__":
    main()
