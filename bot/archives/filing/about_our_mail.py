"""What a mail says about mail of ours: it was delivered, it bounced, or someone wants no more of it."""

from __future__ import annotations

from datetime import datetime

from bot.mail.identity import BotIdentity
from bot.outbox import delivery_evidence
from bot.outbox.correspondents import process_bounce, process_wish
from bot.replies.opt_out import wish_of
from bot.replies.reading import Reading
from bot.replies.sender_kind import SenderKind
from tracker.models import OutgoingMail, OutgoingState


def record_delivery(reading: Reading, identity: BotIdentity, now: datetime) -> bool:
    """Record a mail in our name as delivery evidence; False if it is another mail under the same Message-ID."""
    unsent = OutgoingMail.objects.filter(message_id=reading.mail.message_id).exclude(state=OutgoingState.SENT)
    mail = unsent.first()
    return mail is None or delivery_evidence.evaluate(mail, reading, identity, now)


def process_reply(reading: Reading, identity: BotIdentity, now: datetime) -> None:
    """Take what a mail in a report's thread says about mail to its sender: a bounce, or an opt-out."""
    if reading.kind is SenderKind.BOUNCE:
        process_bounce(reading, identity, now)
    elif reading.kind in (SenderKind.PERSON, SenderKind.BOT_OPERATOR):
        process_wish(reading, identity, now)


def process_other(reading: Reading, identity: BotIdentity, now: datetime) -> bool:
    """Take a mail that is about no report; False if it is not about our mail either."""
    if reading.kind is SenderKind.BOUNCE and process_bounce(reading, identity, now):
        return True  # of a bulletin, which belongs to no report
    if not wish_of(reading, identity):
        return False
    process_wish(reading, identity, now)
    return True
