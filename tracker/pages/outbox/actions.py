"""An operator's action on some outgoing mails: described for confirmation, then carried out mail by mail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.models import OutgoingMail, OutgoingState
from tracker.services import mail_transitions

_DESCRIPTIONS = {
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

    name: str
    mails: Sequence[OutgoingMail]
    excluded: Sequence[OutgoingMail]

    @classmethod
    def for_mails(cls, action: str, mails: Sequence[OutgoingMail], seen: Collection[str] = ()) -> MailAction:
        """`seen`: the versions that the operator saw; none for a mail that was chosen from a list."""
        allowed_states = mail_transitions.ACTIONS[action][1]
        versions = {version.partition("@")[0]: version for version in seen}
        applicable = [
            mail
            for mail in mails
            if mail.state in allowed_states
            and not _must_wait(action, mail)
            and (action != "approve" or versions.get(str(mail.pk), mail.version) == mail.version)
        ]
        return cls(action, applicable, [mail for mail in mails if mail not in applicable])

    @property
    def description(self) -> str:
        """What the action does."""
        return _DESCRIPTIONS[self.name]

    @property
    def in_doubt(self) -> bool:
        """Whether one of the mails may already have been sent."""
        return any(mail.state == OutgoingState.IN_DOUBT for mail in self.mails)

    def carry_out(self, username: str, now: datetime, reason: str) -> tuple[int, int]:
        """Carry it out; return how many mails changed state, and how many did not."""
        done = sum(
            mail_transitions.apply_action(mail.pk, self.name, username, now, reason.strip(), mail.composed_at)
            for mail in self.mails
        )
        return done, len(self.mails) - done + len(self.excluded)

    def summary(self, done: int, unchanged: int) -> str:
        """Return the outcome in a sentence."""
        mails = "1 mail" if done == 1 else f"{done} mails"
        left = f"; {unchanged} not changed, because they are in another state or were recomposed" if unchanged else ""
        return f"{mails} {_DONE[self.name]}{left}."


def _must_wait(action: str, mail: OutgoingMail) -> bool:
    """A mail that is about to be recomposed can't be approved: its text is not what was reviewed."""
    return action == "approve" and mail.stale
