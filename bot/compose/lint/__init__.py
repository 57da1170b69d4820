"""The last look at a mail before the outbox. A mail with a fault is held with the reason.

It is read as its receivers will read it, and held against what it should tell. To add a check: a generator that takes a
`LintContext` and yields sentences in every_mail.py or reports.py, its name in `CHECKS` there, a seeded fault in
tests/bot/test_lint.py.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from bot.compose.conventions import Conventions
from bot.compose.lint import every_mail, reports
from bot.compose.lint.look import LintContext, names_in
from bot.compose.mail import ComposedMail, to_bytes
from bot.compose.report.report_data import ReportData
from bot.mail.identity import BotIdentity
from bot.mail.message import parse
from bot.robot_reports.report import find_report

MOST_FAULTS = 10  # told of one mail


def faults(
    mail: ComposedMail,
    identity: BotIdentity,
    conventions: Conventions,
    now: datetime,
    told: ReportData | None = None,
    foreign: Collection[str] = (),
) -> tuple[str, ...]:
    """What is wrong with a mail, a sentence each; nothing where it may go. `told`: of a report, what it should tell;
    `foreign`: of a further mail, what others have named in it.
    """
    try:
        raw = to_bytes(mail)
    except (ValueError, IndexError) as error:  # what the library for mail says of a header that is none
        return (f"it can't be written as a mail: {error}",)
    read = parse(raw)
    report = find_report(read) if told else None
    names = tuple(names_in(told) if told else foreign)
    look = LintContext(mail, raw, read, identity, conventions, now, names, told, report)
    checks = (*every_mail.CHECKS, *(reports.CHECKS if told else ()))
    found = (fault for check in checks for fault in check(look))
    return tuple(fault for fault, _ in zip(found, range(MOST_FAULTS), strict=False))
