"""Reports that nobody was told of yet: compose their mail and put it into the outbox, once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import F, Q, QuerySet

from bot.compose.policy.policy import Action, decide
from bot.compose.report.report_data import ReportData
from bot.compose.report.report_mail import compose
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.patch_mail import PatchMails
from bot.outbox.context.policy_context import policy_context, unwelcome
from bot.outbox.context.report_loader import report_data, withheld
from bot.outbox.writer import COMPOSER, OutboxWriter
from bot.replies.report_lookup import known_as
from tracker.domain.events import CLOSED, State, Verdict
from tracker.models import Correspondent, OutgoingMail, OutgoingState, Purpose, Report
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions
from tracker.services.report_summary import refresh

AT_ONCE = 1000
NOBODY = ComposeConfig()
log = logging.getLogger(__name__)


def compose_due(
    identity: BotIdentity,
    now: datetime,
    *,
    approve_first: bool = True,
    limit: int = AT_ONCE,
    house: ComposeConfig = NOBODY,
) -> int:
    """Compose the mails of reports that came in as results and were never told, oldest first; the next call goes on.

    `approve_first`: where no rule of the policy decides, a person does. Returns how many.
    """
    otherwise = Action.APPROVE if approve_first else Action.SEND
    due = (
        Report.objects.filter(held="", results__isnull=False, verdict__in=(Verdict.REGRESSION, Verdict.IMPROVEMENT))
        .exclude(state__in=CLOSED - {State.NO_ACTION})  # nobody needs to hear what is gone already
        .exclude(outgoing__purpose=Purpose.REPORT)
        .select_related("culprit", "tree")
        .distinct()
        .order_by("pk")
    )
    round_ = _Round(OutboxWriter(identity, house, now), unwelcome(identity.aliases), otherwise)
    round_.refresh(limit)
    return sum(round_.tried(report) for report in due[:limit])


def look_again(
    identity: BotIdentity, now: datetime, *, approve_first: bool = True, house: ComposeConfig = NOBODY
) -> None:
    """Bring what has not gone out up to date, before a person or a server gets it."""
    otherwise = Action.APPROVE if approve_first else Action.SEND
    _Round(OutboxWriter(identity, house, now), unwelcome(identity.aliases), otherwise).refresh(AT_ONCE)


class _Round:
    """One round of composing, with what all its mails need."""

    def __init__(self, desk: OutboxWriter, unwelcome: Mapping[str, str], otherwise: Action) -> None:
        self.desk, self.unwelcome, self.otherwise = desk, unwelcome, otherwise
        self.patches = PatchMails(desk.house.lore)

    def tried(self, report: Report) -> bool:
        """Compose the mail of one report. An odd one is held with the reason, so that it keeps no other back."""
        try:
            return self._compose(report)
        except OperationalError as busy:  # the next round tries again
            log.error("%s: no mail could be composed: %s", report.culprit.sha10, busy)
        except Exception as error:  # whatever a lab or a tree has told us: one report, not all of them
            log.exception("%s: no mail could be composed", report.culprit.sha10)
            reason = f"no mail could be composed: {type(error).__name__}: {error}".replace("\n", " ").replace("\0", "")
            Report.objects.filter(pk=report.pk).update(held=reason[:500])
            refresh([report.pk])
        return False

    def _told(self, report: Report) -> ReportData:
        return report_data(report, self.desk.identity, self.desk.house, self.patches)

    def _compose(self, report: Report) -> bool:
        desk, newest, later = self.desk, newest_finding(report), withheld(report)  # before what is told is loaded
        told = self._told(report)
        mail = compose(told, desk.identity, desk.now, "", desk.house.conventions, self.unwelcome)
        decision = decide(told, desk.house.policy, policy_context(report), desk.now, self.otherwise)
        start = desk.judge(mail, decision, told)
        with transaction.atomic():
            if not desk.shelve(report, mail, Purpose.REPORT, start, newest, later):
                return False  # another worker composed it at the same time
            known = known_as((*mail.to, *mail.cc))
            Report.objects.filter(pk=report.pk).update(title=report.title or mail.subject, told=known)
        return True

    def refresh(self, limit: int) -> None:
        """Look again at what has not gone out where more is known of since. What nobody has approved is composed again
        under the Message-ID that it has; where nobody should be told any more, or not yet, it is held with the reason.
        """
        unsent = OutgoingMail.objects.filter(purpose=Purpose.REPORT, state__in=WAITING)
        if lately := Correspondent.objects.order_by("-since").values_list("since", flat=True).first():
            before = Q(looked_at__lte=lately) | Q(looked_at=None, composed_at__lte=lately)
            unsent.filter(before).update(stale=True, looked_at=None)  # who gets it may have changed
        over = Q(state=OutgoingState.HELD, by_hand=False, not_before__lte=self.desk.now)  # a hold that passes
        rows = unsent.filter(Q(stale=True) | over).select_related("report__culprit", "report__tree")
        for row in rows.order_by(F("looked_at").asc(nulls_first=True), "pk")[:limit]:
            self._tried_again(row)

    def _tried_again(self, row: OutgoingMail) -> None:
        # What comes meanwhile takes this mark away; what a person or a worker does shows in the rest.
        mine = OutgoingMail.objects.filter(
            pk=row.pk, state=row.state, by_hand=row.by_hand, attempts=row.attempts, looked_at=self.desk.now
        )
        if not OutgoingMail.objects.filter(pk=row.pk, state=row.state).update(stale=True, looked_at=self.desk.now):
            return
        try:
            columns = self._looked_at(row)
        except OperationalError as busy:
            log.error("%s: its mail could not be looked at again: %s", row.about.culprit.sha10, busy)
            return
        except Exception as error:  # as above
            log.exception("%s: its mail could not be composed again", row.about.culprit.sha10)
            reason = f"it could not be composed again: {type(error).__name__}: {error}"
            columns = {"state": OutgoingState.HELD, "reason": reason.replace("\0", "")[:1000], "not_before": None}
        if self._changed(row, mine, {**columns, "stale": False}) and "subject" in columns:
            Report.objects.filter(pk=row.about.pk, title=row.subject).update(title=columns["subject"])

    def _changed(self, row: OutgoingMail, mine: QuerySet[OutgoingMail], columns: dict[str, Any]) -> bool:
        """Write down what became of a mail, unless it has changed since it was read: then it is looked at again."""
        was = OutgoingState(row.state)
        became = columns.pop("state", was)
        if became == was:
            return bool(mine.update(**columns))
        words = str(columns.get("reason", ""))
        return mail_transitions.transition_one(mine, row.pk, was, became, COMPOSER, self.desk.now, words, **columns)

    def _looked_at(self, row: OutgoingMail) -> dict[str, Any]:
        """What becomes of a mail that has not gone out; nothing of one that a person has let go, or that may have been
        seen by a server.
        """
        if row.attempts or (row.by_hand and row.state == OutgoingState.APPROVED):
            return {}
        by_hand = row.by_hand or (row.state == OutgoingState.HELD and not row.reason)
        if reason := _why_not(row.about):
            return {} if by_hand else {"state": OutgoingState.HELD, "reason": reason, "not_before": None}
        return self._again(row, by_hand)

    def _again(self, row: OutgoingMail, by_hand: bool) -> dict[str, Any]:
        """The columns of a mail that is composed again. What a person holds stays held, what waits for him waits."""
        desk, report = self.desk, row.about
        newest, later = newest_finding(report), withheld(report)
        told = self._told(report)
        mail = compose(told, desk.identity, desk.now, row.message_id, desk.house.conventions, self.unwelcome)
        decision = decide(told, desk.house.policy, policy_context(report), desk.now, self.otherwise)
        start = desk.judge(mail, decision, told)
        columns = {**desk.columns(mail), "newest_finding": newest, "withheld": later}
        waits = row.state == OutgoingState.COMPOSED and start.state == OutgoingState.APPROVED
        if by_hand or waits:
            return columns
        if row.state == OutgoingState.APPROVED and start.state != OutgoingState.HELD:
            return columns  # on the day that it has
        desk.note(mail, start)
        return {**columns, "state": start.state, "reason": start.reason, "not_before": start.not_before}


def newest_finding(report: Report) -> int:
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
