"""A composed mail into the outbox: looked at once more, weighed by the policy, and put there once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from bot.compose.lint import faults
from bot.compose.mail import Mail, to_bytes
from bot.compose.policy import Action, Decision
from bot.compose.told import ReportTold
from bot.identity import Identity
from bot.outbox.circumstances import Calendar
from bot.outbox.house import House
from tracker.models import OutgoingMail, OutgoingState, Report

_STATES = {Action.SEND: OutgoingState.APPROVED, Action.APPROVE: OutgoingState.COMPOSED, Action.HOLD: OutgoingState.HELD}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state that a mail begins in, why it is held if it is, and before when it must not go."""

    state: OutgoingState
    reason: str = ""
    not_before: datetime | None = None


class Desk:
    """Who looks at mails before they go into the outbox, for one round of composing."""

    def __init__(self, identity: Identity, house: House, now: datetime) -> None:
        self.identity, self.house, self.now = identity, house, now
        self._calendar = Calendar(house.policy, now)

    def judge(self, mail: Mail, decision: Decision, told: ReportTold | None = None) -> Verdict:
        """Held where it has a fault or the policy says so; else approved, on a day with room, or left to a person."""
        if found := faults(mail, self.identity, self.house.conventions, self.now, told):
            return Verdict(OutgoingState.HELD, "; ".join(found)[:1000])
        state = _STATES[decision.action]
        author = mail.to[0].email if mail.to else ""
        due = self._calendar.due(mail.envelope, author) if state == OutgoingState.APPROVED else None
        return Verdict(state, decision.reason, due)

    def shelve(self, report: Report, mail: Mail, purpose: str, verdict: Verdict, newest: int = 0) -> bool:
        """Put a mail into the outbox; False where another worker was faster. `newest`: the last finding it tells."""
        try:
            with transaction.atomic():
                OutgoingMail.objects.create(
                    message_id=mail.message_id,
                    report=report,
                    purpose=purpose,
                    sender=self.identity.address,
                    state=verdict.state,
                    reason=verdict.reason,
                    not_before=verdict.not_before,
                    newest_finding=newest,
                    **self.columns(mail),
                )
        except IntegrityError:
            return False
        if verdict.state == OutgoingState.APPROVED:
            self._calendar.note(mail.envelope, verdict.not_before)
        return True

    def columns(self, mail: Mail) -> Mapping[str, Any]:
        """What a row holds of a mail's content."""
        return {
            "raw": to_bytes(mail),
            "recipients": list(mail.envelope),
            "people": people(mail),
            "subject": mail.subject,
            "body": mail.body,
            "composed_at": self.now,
        }


def people(mail: Mail) -> list[list[str]]:
    """Everybody who was thought of: address, name, To, Cc or "" for left out, and why."""
    everybody = mail.recipients
    places = (("To", everybody.to), ("Cc", everybody.cc), ("", everybody.left_out[:100]))
    return [[each.email, each.address.name, place, each.why] for place, some in places for each in some]
