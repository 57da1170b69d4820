"""Send what is approved and due: claim a row, talk SMTP outside of any transaction, record what is known."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from bot.outbox import states
from bot.outbox.circumstances import unwelcome
from bot.outbox.transport import Connection, Fate, Outcome, Server
from bot.replies.aliases import Aliases
from tracker.models import OutgoingMail, OutgoingState

BATCH = 50
NOBODY_ELSE = Aliases()
NEVER_GIVE_UP = 2**30  # a server that is down, or a wrong password, fails no mail


def send_due(server: Server, lease: timedelta, limit: int = BATCH, aliases: Aliases = NOBODY_ELSE) -> Counter[str]:
    """Send up to `limit` mails over one connection, and count their fates. What must be looked at again first waits.

    `aliases`: the other addresses of people who want no mail.
    """
    now = timezone.now()
    states.sweep(now)
    due = Q(not_before=None) | Q(not_before__lte=now)
    queue = OutgoingMail.objects.filter(due, state=OutgoingState.APPROVED, stale=False).order_by("pk")
    fates: Counter[str] = Counter()
    with Connection(server) as connection:
        for pk in list(queue.values_list("pk", flat=True)[:limit]):
            if states.claim(pk, timezone.now(), lease):
                fate = deliver(OutgoingMail.objects.get(pk=pk), connection, aliases)
                fates[fate] += 1
                if fate is Fate.NO_SERVER:  # nor for the next one
                    break
    return fates


def deliver(mail: OutgoingMail, connection: Connection, aliases: Aliases = NOBODY_ELSE) -> Fate:
    """Send a claimed mail and record its fate. May die at any line: `states.sweep` knows what to do then."""
    away = unwelcome(aliases)  # who opted out since it was approved
    recipients = [each for each in mail.recipients if each not in away]
    outcome = connection.send(
        mail.sender, recipients, bytes(mail.raw), before_data=lambda: states.begin_data(mail, timezone.now())
    )
    record(mail, outcome, timezone.now())
    return outcome.fate


def record(mail: OutgoingMail, outcome: Outcome, now: datetime) -> None:
    """Write down what became of an attempt."""
    match outcome.fate:
        case Fate.SENT:
            states.mark_sent(mail.message_id, now, now, refused=outcome.words)
        case Fate.LATER:
            states.retry_later(mail, now, outcome.words)
        case Fate.NO_SERVER:
            states.retry_later(mail, now, outcome.words, max_attempts=NEVER_GIVE_UP)
        case Fate.REFUSED:
            states.fail(mail, outcome.words)
        case Fate.DOUBT:
            states.doubt(mail, outcome.words)
        case Fate.LOST_LEASE:
            pass
