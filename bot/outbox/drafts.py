"""Put a composed mail into the outbox: lint it, apply the policy and limits, insert it once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import IntegrityError, transaction

from bot.compose.lint import faults
from bot.compose.mail import ComposedMail, to_bytes
from bot.compose.policy.action import Action
from bot.compose.policy.policy import PolicyDecision
from bot.compose.report.report_data import ReportData
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.policy_context import MailCalendar
from tracker.models import OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import mail_transitions
from tracker.services.restorations import why_careful

COMPOSER = "composing"
_STATES = {Action.SEND: OutgoingState.APPROVED, Action.APPROVE: OutgoingState.COMPOSED, Action.HOLD: OutgoingState.HELD}


@dataclass(frozen=True, slots=True)
class Start:
    """The initial state of a mail, why it is held if it is, and until when it is held or must not be sent."""

    state: OutgoingState
    reason: str = ""
    not_before: datetime | None = None


class OutboxWriter:
    """Checks mails and puts them into the outbox, for one round of composing."""

    def __init__(self, identity: BotIdentity, config: ComposeConfig, now: datetime) -> None:
        self.identity, self.config, self.now = identity, config, now
        self._calendar = MailCalendar(config.policy, now)

    def decide_start(
        self,
        mail: ComposedMail,
        decision: PolicyDecision,
        data: ReportData | None = None,
        foreign: Collection[str] = (),
        *,
        counts: bool = True,
    ) -> Start:
        """Return the initial state: held if the mail has a fault or the policy says so; else approved for a day with
        room, or waiting for approval.

        `foreign`: names and texts in a further mail that are not ours; `counts`: whether the daily limits apply.
        """
        if found := faults(mail, self.identity, self.config.conventions, self.now, data, foreign):
            return Start(OutgoingState.HELD, "; ".join(found)[:1000])
        state = _STATES[decision.action]
        limited = counts and state == OutgoingState.APPROVED
        due = self._calendar.due(*self._limited(mail)) if limited else None
        return Start(state, decision.reason, decision.until or due)

    def insert(
        self,
        report: Report | None,
        mail: ComposedMail,
        purpose: str,
        start: Start,
        newest: int = 0,
        withheld: Sequence[int] = (),
    ) -> bool:
        """Put a mail into the outbox; return False if another worker was faster.

        `report`: None for a bulletin; `newest`: the newest finding that it covers, except for those `withheld`.
        """
        if start.state != OutgoingState.HELD and self._why_careful:
            start = Start(OutgoingState.HELD, self._why_careful)
        row = {
            "message_id": mail.message_id,
            "sender": self.identity.return_path(mail.report_tag, mail.message_id),
            "state": start.state,
            "reason": start.reason,
            "not_before": start.not_before,
            "newest_finding": newest,
            "decided_by_person": bool(self._why_careful),  # no rule lets it go
            "withheld": list(withheld),
            **self.columns(mail),
        }
        same = OutgoingMail.objects.filter(report=report, purpose=purpose)
        cancelled = same.filter(state=OutgoingState.CANCELLED, decided_by_person=False, attempts=0)  # never sent
        columns = {name: value for name, value in row.items() if name != "state"}
        if not mail_transitions.transition(cancelled, start.state, COMPOSER, self.now, start.reason, **columns):
            try:
                with transaction.atomic():
                    mail_transitions.record_created(
                        OutgoingMail.objects.create(report=report, purpose=purpose, **row), COMPOSER
                    )
            except IntegrityError:
                return False
        if not purpose.startswith(Purpose.SUBSCRIPTION):
            self.count(mail, start)
        return True

    @cached_property
    def _why_careful(self) -> str:
        return why_careful(self.now)

    def count(self, mail: ComposedMail, start: Start) -> None:
        """Count an approved mail against the daily limits."""
        if start.state == OutgoingState.APPROVED:
            self._calendar.add(mail.envelope, start.not_before)

    def _limited(self, mail: ComposedMail) -> tuple[list[str], str]:
        """Return the lists that have a limit, and the author ("" if To is a list)."""
        common = {self.identity.list_address, *self.identity.lists, self.config.conventions.lkml}  # get every mail
        recipients = [each for each in (*mail.recipients.to, *mail.recipients.cc) if each.email not in common]
        author = next((each.email for each in mail.recipients.to if each in recipients and not each.is_list), "")
        return [each.email for each in recipients if each.is_list], author

    def columns(self, mail: ComposedMail, message_id: str = "") -> Mapping[str, Any]:
        """Return the columns with a mail's content. `message_id`: its Message-ID, if it is composed again."""
        return {
            "raw": to_bytes(replace(mail, message_id=message_id) if message_id else mail),
            "recipients": list(mail.envelope),
            "people": people(mail),
            "lists": mail.recipients.lists,
            "maintainers": mail.recipients.maintainers,
            "subject": mail.subject,
            "body": mail.body,
            "composed_at": self.now,
            "looked_at": self.now,
        }


def people(mail: ComposedMail) -> list[list[str]]:
    """Return all recipients and those left out: address, name, "To", "Cc" or "" for left out, and the reason."""
    everybody = mail.recipients
    headers = (("To", everybody.to), ("Cc", everybody.cc), ("", everybody.left_out[:100]))
    return [
        [one_line(each.email, 320), one_line(each.address.name, 100), header, one_line(each.why)]
        for header, recipients in headers
        for each in recipients
    ]
