"""Reports that nobody was told of yet: compose their mail and put it into the outbox, once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from bot.compose.policy import Action, decide
from bot.compose.report_mail import compose
from bot.identity import Identity
from bot.outbox.circumstances import circumstances, unwelcome
from bot.outbox.house import House
from bot.outbox.loading import told_of
from bot.outbox.patches import Patches
from bot.outbox.shelving import Desk
from bot.replies.known import known_as
from tracker.models import OutgoingMail, OutgoingState, Report
from tracker.status import CLOSED, State, Verdict

PURPOSE = "report"
AT_ONCE = 1000
NOBODY = House()
log = logging.getLogger(__name__)


def compose_due(
    identity: Identity,
    now: datetime,
    *,
    approve_first: bool = True,
    limit: int = AT_ONCE,
    house: House = NOBODY,
) -> int:
    """Compose the mails of reports that came in as results and were never told, oldest first; the next call goes on.

    `approve_first`: where no rule of the policy decides, a person does. Returns how many.
    """
    otherwise = Action.APPROVE if approve_first else Action.SEND
    house = replace(house, policy=replace(house.policy, otherwise=otherwise))
    due = (
        Report.objects.filter(held="", results__isnull=False, verdict__in=(Verdict.REGRESSION, Verdict.IMPROVEMENT))
        .exclude(state__in=CLOSED - {State.NO_ACTION})  # nobody needs to hear what is gone already
        .exclude(outgoing__purpose=PURPOSE)
        .select_related("culprit", "tree")
        .distinct()
        .order_by("pk")
    )
    round_ = _Round(Desk(identity, house, now), unwelcome())
    round_.refresh(limit)
    composed = 0
    for report in due[:limit]:
        try:
            composed += round_.compose(report)
        except (ValueError, LookupError, UnicodeError) as error:  # one odd report, not all of them
            log.error("%s: no mail could be composed: %s", report.culprit.sha10, error)
    return composed


class _Round:
    """One round of composing, with what all its mails need."""

    def __init__(self, desk: Desk, unwelcome: Mapping[str, str]) -> None:
        self.desk, self.unwelcome = desk, unwelcome
        self.patches = Patches(desk.house.lore)

    def compose(self, report: Report) -> bool:
        desk = self.desk
        told = told_of(report, desk.identity, desk.house, self.patches)
        mail = compose(told, desk.identity, desk.now, "", desk.house.conventions, self.unwelcome)
        verdict = desk.judge(mail, decide(told, desk.house.policy, circumstances(report), desk.now), told)
        with transaction.atomic():
            if not desk.shelve(report, mail, PURPOSE, verdict, newest(report)):
                return False  # another worker composed it at the same time
            known = known_as((*mail.to, *mail.cc))
            Report.objects.filter(pk=report.pk).update(title=report.title or mail.subject, told=known)
        return True

    def refresh(self, limit: int) -> None:
        """Compose again what nobody has approved yet and more is known of since, under the Message-ID that it has.

        Where nobody should be told any more, or not yet, the mail is held with the reason.
        """
        waiting = OutgoingMail.objects.filter(state__in=(OutgoingState.COMPOSED, OutgoingState.HELD))
        stale = waiting.filter(purpose=PURPOSE, stale=True).select_related("report__culprit", "report__tree")
        for row in stale.order_by("pk")[:limit]:
            unsent = waiting.filter(pk=row.pk)
            if reason := _why_not(row.report):
                unsent.update(state=OutgoingState.HELD, reason=reason, stale=False)
                continue
            try:
                columns = self._again(row)
            except (ValueError, LookupError, UnicodeError) as error:
                log.error("%s: its mail could not be composed again: %s", row.report.culprit.sha10, error)
                continue
            with transaction.atomic():
                if unsent.update(**columns, stale=False):
                    Report.objects.filter(pk=row.report.pk, title=row.subject).update(title=columns["subject"])

    def _again(self, row: OutgoingMail) -> dict[str, object]:
        """The columns of a mail that is composed again. What a person holds stays held, what waits for him waits."""
        desk, report = self.desk, row.report
        told = told_of(report, desk.identity, desk.house, self.patches)
        mail = compose(told, desk.identity, desk.now, row.message_id, desk.house.conventions, self.unwelcome)
        decision = decide(told, desk.house.policy, circumstances(report), desk.now)
        verdict = desk.judge(mail, decision, told)
        columns = {**desk.columns(mail), "newest_finding": newest(report)}
        if row.state == OutgoingState.HELD and not row.reason:
            return columns
        if row.state == OutgoingState.COMPOSED and verdict.state == OutgoingState.APPROVED:
            return columns
        return {**columns, "state": verdict.state, "reason": verdict.reason, "not_before": verdict.not_before}


def newest(report: Report) -> int:
    """The newest finding of a report: what comes later is not in a mail that is composed now."""
    return report.findings.order_by("-pk").values_list("pk", flat=True).first() or 0


def _why_not(report: Report) -> str:
    """Why nobody should be told of a report that a mail was composed of."""
    if report.held:
        return report.held.replace("\n", "; ")
    if report.verdict == Verdict.UNKNOWN:
        return "whether it is a regression is not known any more"
    if State(report.state) in CLOSED - {State.NO_ACTION}:
        return f"before anybody was told: {report.status}"
    return ""
