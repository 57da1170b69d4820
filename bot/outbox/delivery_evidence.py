"""What a mail in an archive proves of a mail of ours: a copy of it, or another one that only bears its Message-ID."""

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


def hear(mail: OutgoingMail, reading: Reading, identity: BotIdentity, now: datetime) -> bool:
    """Take what was read as proof of what became of a mail that is not known to be sent; False where it is no copy.

    Of a mail that may have left, a copy is proof. Of one that only waits, as after a backup was restored, it must be
    proven that we wrote it (DESIGN rule 8); else the mail is held, so that a person looks before it goes out twice.
    """
    if not is_copy(mail, reading.mail):
        mail_transitions.add_note(mail, BY, now, "another mail with its Message-ID was read: that is no copy of it")
        return False
    proven = reading.trust.verdict is AuthVerdict.PASS or identity.trust == "open"
    if mail.state in MAY_HAVE_LEFT or proven:
        mail_transitions.mark_sent(mail.message_id, reading.mail.date or now, now, BY, "a copy was read")
    elif mail.state in WAITING and not mail.settled:
        words = "a copy of it was read, though it is not known to have left, nor proven that we wrote it: look first"
        waiting = OutgoingMail.objects.filter(pk=mail.pk, state__in=WAITING)
        mail_transitions.transition(waiting, S.HELD, BY, now, words, reason=words, by_hand=True, not_before=None)
    return True


def is_copy(mail: OutgoingMail, found: ParsedMail) -> bool:
    """Whether a mail is a copy of ours: the same moment and the same words, whatever a list put around them."""
    ours = parse(bytes(mail.raw))
    return ours.date == found.date and " ".join(ours.text.split()) in " ".join(found.text.split())
