"""Whether a robot's report was sent by that robot: judged like any other mail (DESIGN rule 8)."""

from __future__ import annotations

from bot.replies.reading import Reading
from bot.robot_reports.report import find_report
from bot.robot_reports.value import RobotReport


def is_proven(report: RobotReport, reading: Reading, policy: str) -> bool:
    """Whether the report in a mail counts without a click: its sender is proven, and every reading says the same.

    `open`, for old archives: always.
    """
    if policy == "open":
        return True
    others = reading.others
    return reading.trust.proven and others is not None and all(find_report(each.mail) == report for each in others)
