"""Delivery evidence from archives: tell a copy of our mail from another mail with the same Message-ID."""

from __future__ import annotations

from datetime import datetime

from bot.mail.auth.verdict import AuthVerdict
from bot.mail.identity import BotIdentity
from bot.mail.message import ParsedMail, parse
from bot.replies.reading import Reading
from tracker.models import OutgoingMail, OutgoingState
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions

S = OutgoingState
BY = "archive"
MAY_HAVE_LEFT = frozenset({S.SENDING, S.IN_DOUBT})


def evaluate(mail: OutgoingMail, reading: Reading, identity: BotIdentity, now: datetime) -> bool:
    """Evaluate an archived mail as evidence for a mail that is not known to be sent; return False if it is no copy.

    If our mail may have been sent, a copy is proof. If it still waits, as after a restored backup, the copy must be
    authenticated as ours (DESIGN rule 8); else the mail is held, so that a person checks before it is sent twice.
    """
    if not is_copy(mail, reading.mail):
        mail_transitions.add_note(mail, BY, now, "an archived mail has the same Message-ID, but it is not a copy")
        return False
    proven = reading.trust.verdict is AuthVerdict.PASS or identity.trust_policy == "open"
    if mail.state in MAY_HAVE_LEFT or proven:
        mail_transitions.mark_sent(mail.message_id, reading.mail.date or now, now, BY, "a copy was found")
    elif mail.state in WAITING and not mail.settled:
        reason = "an archive has an unauthenticated copy, though this mail was not sent from here: check before sending"
        waiting = OutgoingMail.objects.filter(pk=mail.pk, state__in=WAITING)
        mail_transitions.transition(
            waiting, S.HELD, BY, now, reason, reason=reason, decided_by_person=True, not_before=None
        )
    return True


def is_copy(mail: OutgoingMail, found: ParsedMail) -> bool:
    """Return whether a mail is a copy of ours: the same date, and our text inside whatever a list added."""
    ours = parse(bytes(mail.raw))
    return ours.date == found.date and " ".join(ours.text.split()) in " ".join(found.text.split())
