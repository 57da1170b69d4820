"""The lint of a mail before it enters the outbox. A mail with a fault is held, with the fault as the reason.

The mail is parsed as its recipients will, and compared with what it should say. To add a check: write a generator
that takes a `LintContext` and yields sentences in every_mail.py or reports.py, name it in `CHECKS` there, and add a
seeded fault to tests/bot/compose/test_lint.py.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from email.errors import MessageError

from bot.compose.conventions import Conventions
from bot.compose.lint import every_mail, reports
from bot.compose.lint.context import LintContext, names_in
from bot.compose.mail import ComposedMail, to_bytes
from bot.compose.report.report_data import ReportData
from bot.mail.identity import BotIdentity
from bot.mail.message import parse
from bot.robot_reports.report import find_report

MOST_FAULTS = 10  # listed for one mail


def faults(
    mail: ComposedMail,
    identity: BotIdentity,
    conventions: Conventions,
    now: datetime,
    expected: ReportData | None = None,
    foreign: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the faults of a mail, one sentence each; empty if it may be sent.

    `expected`: what a report mail should say; `foreign`: in a further mail, the names and texts that are not ours.
    """
    try:
        raw = to_bytes(mail)
    except (ValueError, IndexError, MessageError) as error:  # the email package, by its version, for a bad header
        return (f"not a valid mail: {error}",)
    read = parse(raw)
    report = find_report(read) if expected else None
    names = tuple(names_in(expected) if expected else foreign)
    context = LintContext(mail, raw, read, identity, conventions, now, names, expected, report)
    checks = (*every_mail.CHECKS, *(reports.CHECKS if expected else ()))
    found = (fault for check in checks for fault in check(context))
    return tuple(fault for fault, _ in zip(found, range(MOST_FAULTS), strict=False))
