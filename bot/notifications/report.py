"""Compose the mails of new reports and put them into the outbox, each once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from bot.compose.policy.action import Action
from bot.compose.policy.policy import decide
from bot.compose.report.report_data import ReportData
from bot.compose.report.report_mail import compose
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.patch_mail import PatchMails
from bot.outbox.context.policy_context import excluded_addresses, policy_context
from bot.outbox.context.report_loader import report_data, withheld
from bot.outbox.writer import COMPOSER, OutboxWriter
from bot.replies.which_report.report_lookup import person_keys
from tracker.domain.events import CLOSED, State, Verdict
from tracker.models import Correspondent, OutgoingMail, OutgoingState, Purpose, Report
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions
from tracker.services.accounts.maintainers import learn_maintainers
from tracker.services.reports.report_summary import refresh
from tracker.services.sql.interrupted import is_interruption

AT_ONCE = 1000
DEFAULT_CONFIG = ComposeConfig()
log = logging.getLogger(__name__)


def compose_due(
    identity: BotIdentity,
    now: datetime,
    *,
    approve_first: bool = True,
    limit: int = AT_ONCE,
    config: ComposeConfig = DEFAULT_CONFIG,
) -> int:
    """Compose up to `limit` mails of reports from results that have none yet, oldest first. Return how many.

    `approve_first`: mails that no rule of the policy decides on wait for a person.
    """
    otherwise = Action.APPROVE if approve_first else Action.SEND
    due = (
        Report.objects.filter(held="", results__isnull=False, verdict__in=(Verdict.REGRESSION, Verdict.IMPROVEMENT))
        .exclude(state__in=CLOSED - {State.NO_ACTION})  # already resolved
        .exclude(outgoing__purpose=Purpose.REPORT)
        .select_related("culprit", "tree")
        .distinct()
        .order_by("pk")
    )
    round_ = _Round(OutboxWriter(identity, config, now), excluded_addresses(identity.aliases), otherwise)
    round_.refresh(limit)
    return sum(round_.try_compose(report) for report in due[:limit])


def refresh_unsent(
    identity: BotIdentity, now: datetime, *, approve_first: bool = True, config: ComposeConfig = DEFAULT_CONFIG
) -> None:
    """Bring unsent mails up to date, before a person approves them or a server gets them."""
    otherwise = Action.APPROVE if approve_first else Action.SEND
    _Round(OutboxWriter(identity, config, now), excluded_addresses(identity.aliases), otherwise).refresh(AT_ONCE)


class _Round:
    """One round of composing, with what its mails share."""

    def __init__(self, writer: OutboxWriter, excluded: Mapping[str, str], otherwise: Action) -> None:
        self.writer, self.excluded, self.otherwise = writer, excluded, otherwise
        self.patches = PatchMails(writer.config.patch_lookup)

    def try_compose(self, report: Report) -> bool:
        """Compose the mail of one report. On an error, hold the report with the reason, so that it blocks no other."""
        try:
            return self._compose(report)
        except Exception as error:  # bad data from a lab or a tree: affects one report only
            if is_interruption(error):  # the next round tries again
                log.error("%s: composing its mail failed: %s", report.culprit.sha10, error)
                return False
            log.exception("%s: composing its mail failed", report.culprit.sha10)
            reason = f"composing its mail failed: {type(error).__name__}: {error}".replace("\n", " ").replace("\0", "")
            Report.objects.filter(pk=report.pk).update(held=reason[:500])
            refresh([report.pk])
        return False

    def _report_data(self, report: Report) -> ReportData:
        return report_data(report, self.writer.identity, self.writer.config, self.patches)

    def _compose(self, report: Report) -> bool:
        writer, newest, held = self.writer, newest_finding(report), withheld(report)  # before the findings are loaded
        data = self._report_data(report)
        mail = compose(data, writer.identity, writer.now, "", writer.config.conventions, self.excluded)
        decision = decide(data, writer.config.policy, policy_context(report), writer.now, self.otherwise)
        start = writer.decide_start(mail, decision, data)
        with transaction.atomic():
            if not _is_as_read(report):
                return False  # composed in the next round, from what is known by then
            if not writer.insert(report, mail, Purpose.REPORT, start, newest, held):
                return False  # another worker was faster
            learn_maintainers(report.subsystem, mail.recipients.maintainers)
            known = person_keys((*mail.to, *mail.cc))
            Report.objects.filter(pk=report.pk).update(title=report.title or mail.subject, recipients=known)
        return True

    def refresh(self, limit: int) -> None:
        """Recompose unsent mails about which more is known by now, under the same Message-ID, unless approved. Those
        that should not be sent any more, or not yet, are held with the reason.
        """
        unsent = OutgoingMail.objects.filter(purpose=Purpose.REPORT, state__in=WAITING)
        if last_change := Correspondent.objects.order_by("-since").values_list("since", flat=True).first():
            before = Q(looked_at__lte=last_change) | Q(looked_at=None, composed_at__lte=last_change)
            unsent.filter(before).update(stale=True, looked_at=None)  # recipients may have changed
        expired = Q(
            state=OutgoingState.HELD, decided_by_person=False, not_before__lte=self.writer.now
        )  # a hold that has expired
        rows = unsent.filter(Q(stale=True) | expired).select_related("report__culprit", "report__tree")
        for row in rows.order_by(F("looked_at").asc(nulls_first=True), "pk")[:limit]:
            self._try_refresh(row)

    def _try_refresh(self, row: OutgoingMail) -> None:
        # A concurrent event resets looked_at; what a person or a worker does shows in the other columns.
        unchanged = OutgoingMail.objects.filter(
            pk=row.pk,
            state=row.state,
            decided_by_person=row.decided_by_person,
            attempts=row.attempts,
            looked_at=self.writer.now,
        )
        if not OutgoingMail.objects.filter(pk=row.pk, state=row.state).update(stale=True, looked_at=self.writer.now):
            return
        try:
            columns = self._refreshed_columns(row)
        except Exception as error:  # as above
            if is_interruption(error):
                log.error("%s: checking its mail again failed: %s", row.about.culprit.sha10, error)
                return
            log.exception("%s: composing its mail again failed", row.about.culprit.sha10)
            reason = f"composing it again failed: {type(error).__name__}: {error}"
            columns = {"state": OutgoingState.HELD, "reason": reason.replace("\0", "")[:1000], "not_before": None}
        if self._record(row, unchanged, {**columns, "stale": False}) and "subject" in columns:
            Report.objects.filter(pk=row.about.pk, title=row.subject).update(title=columns["subject"])

    def _record(self, row: OutgoingMail, unchanged: QuerySet[OutgoingMail], columns: dict[str, Any]) -> bool:
        """Record the outcome, unless the mail has changed since it was read: then it is checked again later."""
        was = OutgoingState(row.state)
        became = columns.pop("state", was)
        if became == was:
            return bool(unchanged.update(**columns))
        reason = str(columns.get("reason", ""))
        return mail_transitions.transition_one(
            unchanged, row.pk, was, became, COMPOSER, self.writer.now, reason, **columns
        )

    def _refreshed_columns(self, row: OutgoingMail) -> dict[str, Any]:
        """Return the columns to change of an unsent mail; none if a person approved it or somebody has got it. What a
        server may have seen is not composed again.
        """
        if row.sent_at or (row.decided_by_person and row.state == OutgoingState.APPROVED):
            return {}
        manual = row.decided_by_person or (row.state == OutgoingState.HELD and not row.reason)
        if reason := _why_not(row.about):
            return {} if manual else {"state": OutgoingState.HELD, "reason": reason, "not_before": None}
        return {} if row.attempts else self._recomposed_columns(row, manual)

    def _recomposed_columns(self, row: OutgoingMail, manual: bool) -> dict[str, Any]:
        """Return the columns of a recomposed mail. What a person holds stays held; what waits for approval waits."""
        writer, report = self.writer, row.about
        newest, held = newest_finding(report), withheld(report)
        data = self._report_data(report)
        mail = compose(data, writer.identity, writer.now, row.message_id, writer.config.conventions, self.excluded)
        decision = decide(data, writer.config.policy, policy_context(report), writer.now, self.otherwise)
        start = writer.decide_start(mail, decision, data)
        columns = {**writer.columns(mail), "newest_finding": newest, "withheld": held}
        waits = row.state == OutgoingState.COMPOSED and start.state == OutgoingState.APPROVED
        if manual or waits:
            return columns
        if row.state == OutgoingState.APPROVED and start.state != OutgoingState.HELD:
            return columns  # on the day already assigned
        writer.count(mail, start)
        return {**columns, "state": start.state, "reason": start.reason, "not_before": start.not_before}


def newest_finding(report: Report) -> int:
    """Return the key of a report's newest finding, 0 for none: later ones are not in a mail that is composed now."""
    return report.findings.order_by("-pk").values_list("pk", flat=True).first() or 0


def _is_as_read(report: Report) -> bool:
    """Lock a report; return whether it is as it was when its mail was composed, which may be seconds ago."""
    same = Report.objects.filter(revision=report.revision, held=report.held, verdict=report.verdict)
    return same.select_for_update().filter(pk=report.pk).values_list("pk").first() is not None


def _why_not(report: Report) -> str:
    """Return why the composed mail of a report must not be sent, or ""."""
    if report.held:
        return report.held.replace("\n", "; ")
    if report.verdict == Verdict.UNKNOWN:
        return "the verdict is no longer known"
    if State(report.state) in CLOSED - {State.NO_ACTION}:
        return f"closed before any mail was sent: {report.status}"
    return ""
