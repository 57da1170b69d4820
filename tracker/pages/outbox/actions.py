"""An operator's action on some outgoing mails: described for confirmation, then carried out mail by mail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.models import OutgoingMail, OutgoingState
from tracker.services import mail_transitions

_SAYS = {
    "approve": "They are sent as soon as they are due.",
    "hold": "They stay in the outbox until they are approved.",
    "cancel": "They are never sent. Copies that were already delivered are not recalled.",
    "resend": "They are sent again with the same Message-ID. Archives and most mail programs drop the second copy, but"
    " some recipients may see it twice.",
}
_DONE = {"approve": "approved", "hold": "held", "cancel": "cancelled", "resend": "queued again"}


@dataclass(frozen=True, slots=True)
class MailAction:
    """An action, the mails that it applies to, and those that it does not."""

    verb: str
    mails: Sequence[OutgoingMail]
    unfit: Sequence[OutgoingMail]

    @classmethod
    def on(cls, verb: str, mails: Sequence[OutgoingMail]) -> MailAction:
        within = mail_transitions.ACTIONS[verb][1]
        fit = [mail for mail in mails if mail.state in within and not _must_wait(verb, mail)]
        return cls(verb, fit, [mail for mail in mails if mail not in fit])

    @property
    def says(self) -> str:
        """What the action does."""
        return _SAYS[self.verb]

    @property
    def doubtful(self) -> bool:
        """Whether one of the mails may already have been sent."""
        return any(mail.state == OutgoingState.IN_DOUBT for mail in self.mails)

    def carry_out(self, person: str, now: datetime, reason: str) -> tuple[int, int]:
        """Carry it out; return how many mails changed state, and how many did not."""
        done = sum(
            mail_transitions.apply_action(mail.pk, self.verb, person, now, reason.strip()) for mail in self.mails
        )
        return done, len(self.mails) - done + len(self.unfit)

    def told(self, done: int, stuck: int) -> str:
        """Return the outcome in a sentence."""
        mails = "1 mail" if done == 1 else f"{done} mails"
        left = f"; {stuck} not changed, because they are now in another state" if stuck else ""
        return f"{mails} {_DONE[self.verb]}{left}."


def _must_wait(verb: str, mail: OutgoingMail) -> bool:
    """A mail that is about to be recomposed can't be approved: its text is not what was reviewed."""
    return verb == "approve" and mail.stale
