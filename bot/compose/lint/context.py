"""The input of a check: an outgoing mail, how its recipients will read it, and what it should say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.compose.conventions import Conventions
from bot.compose.mail import ComposedMail
from bot.compose.report.report_data import ReportData
from bot.mail import message as received
from bot.mail.identity import BotIdentity
from bot.robot_reports.value import RobotReport


@dataclass(frozen=True, slots=True)
class LintContext:
    """`raw`, `read`: the mail as bytes, and as its recipients parse it; `foreign`: names and texts in it that are not
    ours. For a further mail, `expected` and `report` are None.
    """

    mail: ComposedMail
    raw: bytes
    read: received.ParsedMail
    identity: BotIdentity
    conventions: Conventions
    now: datetime
    foreign: tuple[str, ...] = ()
    expected: ReportData | None = None
    report: RobotReport | None = None


Check = Callable[[LintContext], Iterator[str]]


def names_in(report: ReportData) -> Iterator[str]:
    """Yield the texts of a report that come from labs and commits, and may look like anything."""
    yield from (
        report.title,
        report.parent_title,
        report.tree,
        report.tree_url,
        report.branch,
        report.base,
        report.good,
        report.bad,
    )
    yield from (report.raw, report.test_text, report.test_url, *(each.ref for each in report.rechecks))
    yield from (text for pair in report.artifacts for text in pair)
    build = report.build
    yield from (build.kconfig, build.compiler, build.rootfs, build.cmdline, build.config_url)
    for each in report.findings:
        yield from (each.metric, each.suite, each.machine, each.machine_text, each.unit)
        yield from (*each.params.keys(), *each.params.values())
