"""Thousands of approved mails, created without a lab: each about its own report."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from bot.compose.mail import ComposedMail, Recipient, Recipients, to_bytes
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from tracker.domain.events import Verdict
from tracker.domain.report_state import fold
from tracker.domain.text import tag_of
from tracker.models import Commit, MailTransition, OutgoingMail, OutgoingState, Report
from tracker.services import report_summary

BOT = BotSettings(address="perfbot@bot.example.org", list_address="perf-reports@lists.example.org")
DANA = Recipient(Address("Dana Brook", "dana@dev.example"), "author")
LEE = Recipient(Address("Lee Park", "lee@dev.example"), "a maintainer")
MM = Recipient(Address("", "mm@lists.example.org"), "a list", is_list=True)
LIST = Recipient(Address("", BOT.list_address), "our own list")
LINE = "vm-scan.ops_per_sec went from 1000 to 700 on lab7-m1, of which this line is one of many.\n"


def make(number: int, at: datetime, first: int = 0, lines: int = 30) -> None:
    """Create `number` mails of typical size (3 KB), in batches of at most 1000."""
    for start in range(first, first + number, 1000):
        _make(range(start, min(start + 1000, first + number)), at, lines)


def _make(numbers: range, at: datetime, lines: int) -> None:
    commits = Commit.objects.bulk_create(Commit(sha=f"{each + 1:040x}", title=f"mm: {each}") for each in numbers)
    summary = report_summary.state_columns(fold(Verdict.REGRESSION, []), followed=False)
    reports = Report.objects.bulk_create(
        Report(culprit=commit, tag=tag_of(commit.sha), verdict=Verdict.REGRESSION, **summary) for commit in commits
    )
    mails = OutgoingMail.objects.bulk_create(_row(report, at, lines) for report in reports)
    MailTransition.objects.bulk_create(
        MailTransition(mail=mail, became=mail.state, at=at, by="composing") for mail in mails
    )


def _row(report: Report, at: datetime, lines: int) -> OutgoingMail:
    mark = hashlib.sha256(report.tag.encode()).hexdigest()[:16]
    mail = ComposedMail(
        message_id=f"{mark}-perfbot@bot.example.org",
        sender=Address("Perfwork", BOT.address),
        reply_to=Address("Perfwork", BOT.tagged(report.tag)),
        recipients=Recipients((DANA,), (LEE, MM, LIST)),
        subject=f"[LKP] [mm] {report.culprit.sha10}: -30.0% regression",
        date=at - timedelta(microseconds=at.microsecond),
        body=f"Hello,\n\nthe culprit is {report.culprit.sha}.\n" + LINE * lines,
        report_tag=report.tag,
    )
    return OutgoingMail(
        message_id=mail.message_id,
        report=report,
        raw=to_bytes(mail),
        sender=BOT.return_path(report.tag, mail.message_id),
        recipients=list(mail.envelope),
        lists=mail.recipients.lists,
        subject=mail.subject,
        body=mail.body,
        state=OutgoingState.APPROVED,
        composed_at=at,
        looked_at=at,
    )
