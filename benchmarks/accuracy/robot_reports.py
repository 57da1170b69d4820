"""Accuracy: the fields of the robot's reports compared with hand-made labels, one line per field; and how replies
are read, per rule, intent and thread (replies.py).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy import replies
from benchmarks.accuracy.shares import share
from bot.archives.files import read_mbox
from bot.explain import report_json
from bot.mail.message import parse
from bot.robot_reports.report import find_report

SHARED = ROOT.parent / "shared" / "data"
DATASETS = ("reports-dev", "reports-in-patch-threads-dev")
# Fields of the mail as a whole, which `explain` prints outside the report.
OUTSIDE_REPORT = frozenset({"message_id", "list", "date", "date_utc", "subject", "from", "to", "cc", "in_reply_to"})
OTHER_NAMES = {
    "full_sha": "culprit",
    "commit_subject": "culprit_title",
    "testcase": "suite",
    "tree_branch": "branch",
    "parent_sha16": "parent",
    "additional_impact": "additional",
}
SIDES = {
    "old_value": ("old", "mean"),
    "old_stddev_pct": ("old", "stddev_pct"),
    "new_value": ("new", "mean"),
    "new_stddev_pct": ("new", "stddev_pct"),
}


def found_as(field: str, report: dict[str, Any] | None) -> Any:
    """Return our value of a field, by its name in the labels."""
    if report is None:
        return "no report"
    if field in SIDES:
        side, part = SIDES[field]
        return (report[side] or {}).get(part)
    return report.get(OTHER_NAMES.get(field, field), "no such field")


def folded(value: Any) -> Any:
    """Collapse white space in all text of a value, at any depth."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return [folded(each) for each in value]
    if isinstance(value, dict):
        return {key: folded(each) for key, each in value.items()}
    return value


def compared() -> Iterator[tuple[str, str, Any, Any]]:
    """Yield Message-ID, field, expected value and found value, for every field of every report."""
    for name in DATASETS:
        expected = {each["message_id"]: each for each in json.loads((SHARED / f"{name}.json").read_text())}
        for raw in read_mbox(SHARED / f"{name}.mbox"):
            mail = parse(raw.raw)
            found = find_report(mail)
            report = report_json(found, mail) if found else None
            for field, want in expected[mail.message_id].items():
                if field not in OUTSIDE_REPORT:
                    yield mail.message_id, field, folded(want), folded(found_as(field, report))


def main() -> None:
    if not SHARED.is_dir():
        sys.exit(f"the real reports are not on this machine (expected in {SHARED})")
    right: Counter[str] = Counter()
    labelled: Counter[str] = Counter()
    for message_id, field, want, found in compared():
        labelled[field] += 1
        right[field] += want == found
        if want != found and "-v" in sys.argv:
            print(f"{field} of {message_id}: expected {want!r}, found {found!r}")
    print(f"{'field':24}{'right':>7}{'asked':>7}{'%':>8}")
    for field in labelled:
        print(f"{field:24}{right[field]:7}{labelled[field]:7}{100 * right[field] / labelled[field]:8.1f}")
    hand = "hand-made labels, real mail"
    share("fields of robots' reports", right.total(), labelled.total(), hand, unseen=False)
    print(f"{'all':24}{right.total():7}{labelled.total():7}{100 * right.total() / labelled.total():8.1f}")

    print()
    replies.report()


if __name__ == "__main__":
    main()
