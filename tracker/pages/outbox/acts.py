"""What an operator is about to do to some mails: said first, then done, mail by mail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.models import OutgoingMail, OutgoingState
from tracker.services import mail_transitions

_SAYS = {
    "approve": "They are sent as soon as they are due.",
    "hold": "They stay in the outbox until somebody approves them.",
    "cancel": "They are never sent. Who has got one already keeps it.",
    "resend": "They are sent again with the same Message-ID: archives and most mail programs drop a second copy, but a"
    " person may see it twice.",
}
_DONE = {"approve": "approved", "hold": "held", "cancel": "cancelled", "resend": "queued again"}


@dataclass(frozen=True, slots=True)
class MailAction:
    """A verb, the mails that it can be done to, and those that it can't."""

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
        """What it leads to."""
        return _SAYS[self.verb]

    @property
    def doubtful(self) -> bool:
        """Whether one of them may have gone out already."""
        return any(mail.state == OutgoingState.IN_DOUBT for mail in self.mails)

    def carry_out(self, person: str, now: datetime, reason: str) -> tuple[int, int]:
        """Do it; how many moved, and how many did not, since somebody was faster or they were not fit."""
        done = sum(
            mail_transitions.apply_action(mail.pk, self.verb, person, now, reason.strip()) for mail in self.mails
        )
        return done, len(self.mails) - done + len(self.unfit)

    def told(self, done: int, stuck: int) -> str:
        """What became of it, in a sentence."""
        mails = "1 mail" if done == 1 else f"{done} mails"
        left = f"; {stuck} left as they are, since they are in another state by now" if stuck else ""
        return f"{mails} {_DONE[self.verb]}{left}."


def _must_wait(verb: str, mail: OutgoingMail) -> bool:
    """What is about to be composed again can't be approved: it is not what was looked at."""
    return verb == "approve" and mail.stale
