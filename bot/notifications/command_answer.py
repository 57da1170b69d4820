"""Replies to failed commands: one per mail, at most one per hour, person and report, and only to people."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from bot.mail.auth.verdict import AuthVerdict
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import is_address
from bot.replies.reading import Reading
from tracker.models import OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import mail_transitions
from tracker.services.restorations import why_careful

APART = timedelta(hours=1)
FRESH = timedelta(days=3)  # older mail gets no reply; archives go back decades
MOST_A_DAY = 10  # per report
MOST_A_DAY_IN_ALL = 100
_NOBODY = re.compile(r"[^@]*(?:-owner|-request|-bounces|-help|mailman|majordomo|no-?reply)@", re.I)


def answer(reading: Reading, report: Report, identity: BotIdentity, now: datetime) -> bool:
    """Compose the reply to a mail into the outbox; return False if it gets none."""
    if not _deserved(reading, report, identity, now):
        return False
    author = reading.mail.author.email
    purpose = f"{Purpose.ANSWER}{author} "
    if OutgoingMail.objects.filter(report=report, purpose__startswith=purpose, composed_at__gt=now - APART).exists():
        return False
    if _too_many(report, now):
        return False
    from bot.compose.answer_mail import answer_to  # few readings meet a failed command
    from bot.compose.mail import to_bytes

    careful = why_careful(now)
    mail = answer_to(reading, report.tag, report.culprit.sha, identity, now)
    try:
        with transaction.atomic():
            row = OutgoingMail.objects.create(
                message_id=mail.message_id,
                report=report,
                purpose=purpose + reading.mail.message_id,
                raw=to_bytes(mail),
                sender=identity.return_path(report.tag, mail.message_id),
                recipients=list(mail.envelope),
                lists=[identity.list_address],
                subject=mail.subject,
                composed_at=now,
                state=OutgoingState.HELD if careful else OutgoingState.COMPOSED,
                reason=careful,
            )
            mail_transitions.record_created(row, "answering")
    except IntegrityError:
        return False  # already answered
    return True


def _too_many(report: Report, now: datetime) -> bool:
    """Return whether the daily limit is reached. It bounds abuse, since senders can be forged."""
    lately = OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER, composed_at__gt=now - timedelta(days=1))
    return lately.filter(report=report).count() >= MOST_A_DAY or lately.count() >= MOST_A_DAY_IN_ALL


def _deserved(reading: Reading, report: Report, identity: BotIdentity, now: datetime) -> bool:
    """Return whether it is a recent mail from a person about one of our reports. For most mail no query is made."""
    mail = reading.mail
    if not (reading.may_get_error_reply and mail.message_id) or reading.trust.verdict is AuthVerdict.FAIL:
        return False
    if mail.mark("precedence").lower() in ("bulk", "list", "junk"):  # RFC 3834 section 2
        return False
    if not (reading.trust.proven or identity.trust_policy == "open" or _has_got_mail(mail.author.email, report)):
        return False  # whoever it really is from, this address did not ask us for anything
    lists = {identity.list_address, *identity.lists, *identity.robots}
    fresh = mail.date is not None and now - FRESH < mail.date
    reachable = (
        is_address(mail.author.email) and mail.author.email not in lists and not _NOBODY.match(mail.author.email)
    )
    if not (fresh and reachable):
        return False
    return report.tag in reading.tags or report.outgoing.filter(purpose=Purpose.REPORT).exists()


def _has_got_mail(address: str, report: Report) -> bool:
    """Return whether our mail about the report went to an address: then one more in its thread is no news to it."""
    sent = report.outgoing.filter(state=OutgoingState.SENT).values_list("recipients", flat=True)
    return any(address.lower() in (each.lower() for each in recipients) for recipients in sent)


def approve_answers(now: datetime) -> int:
    """Approve all waiting replies, for installations without manual approval. Return how many."""
    waiting = OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER, state=OutgoingState.COMPOSED)
    return len(mail_transitions.transition(waiting, OutgoingState.APPROVED, "answering", now))
