"""Send approved mail that is due: claim a batch, talk SMTP outside any transaction, record each outcome."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import DatabaseError
from django.utils import timezone

from bot.compose.policy.rates import Rates
from bot.mail.mailmap import Aliases
from bot.outbox import recovery
from bot.outbox.context.policy_context import unwelcome
from bot.outbox.scheduler import claim_due, next_due
from bot.outbox.sent_folder import SentFolder
from bot.outbox.signing import Signing
from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus, Transport
from tracker.models import OutgoingMail
from tracker.services import mail_transitions
from tracker.services.outgoing import record_sent

BATCH = 100
TELL = 500  # record events after this many mails: batches halve the cost
LINGER = 5.0  # seconds that a call waits for the next due mail
log = logging.getLogger(__name__)
ENDS_A_ROUND = frozenset({SendStatus.NO_SERVER, SendStatus.NOT_NOW})


@dataclass(frozen=True, slots=True)
class SendConfig:
    """The send config. `lease`: how long a worker may take for a batch; `run`: seconds after which a call claims no
    more, 0 for one batch; `aliases`: a person's other addresses, to which an opt-out applies as well.
    """

    lease: timedelta = timedelta(minutes=5)
    run: float = 0.0
    rates: Rates = field(default_factory=Rates)
    aliases: Aliases = field(default_factory=Aliases)
    signing: Signing = field(default_factory=Signing)
    sent_folder: SentFolder | None = None


PLAIN = SendConfig()


def send_due(transport: Transport, manner: SendConfig) -> Counter[SendStatus]:
    """Send due mail until none is left, the time is up, the server is gone, or all sending is stopped. Return the
    number of mails by fate.

    The process may die at any line: `doubts.sweep` recovers.
    """
    until, by = time.monotonic() + manner.run, worker()
    fates: Counter[SendStatus] = Counter()
    told = 0
    recovery.sweep(timezone.now())
    try:
        while not mail_transitions.stopped():
            few = BATCH if fates or not manner.run else 1  # one mail first, to find out whether the server is up
            batch = claim_due(timezone.now(), manner.lease, few, by, manner.rates)
            outcome = _send(batch, transport, manner, until, by)
            fates += outcome
            if fates.total() - told >= TELL:
                record_sent.record_sent(timezone.now())
                told = fates.total()
            if ENDS_A_ROUND & outcome.keys() or time.monotonic() > until or not (batch or _rest(until)):
                break
        record_sent.record_sent(timezone.now())
    finally:
        try:
            transport.close()
        finally:
            if manner.sent_folder:
                manner.sent_folder.close()
    return fates


def _send(
    batch: Sequence[OutgoingMail], transport: Transport, manner: SendConfig, until: float, by: str
) -> Counter[SendStatus]:
    """Send one batch. Mails for which no time or no server is left go back to the queue."""
    fates: Counter[SendStatus] = Counter()
    away = unwelcome(manner.aliases) if batch else {}
    half = time.monotonic() + manner.lease.total_seconds() / 2  # the other half is for the mail in progress
    for number, mail in enumerate(batch):
        fate = _tried(mail, transport, manner, by, away)
        fates[fate] += 1
        rest = batch[number + 1 :]
        if fate in ENDS_A_ROUND:
            mail_transitions.release(rest, timezone.now(), by, "")
            break
        if rest and (time.monotonic() > half or (manner.run and time.monotonic() > until)):
            mail_transitions.release(rest, timezone.now(), by, "no time left")
            break
    return fates


def _tried(
    mail: OutgoingMail, transport: Transport, manner: SendConfig, by: str, away: Mapping[str, str]
) -> SendStatus:
    """Send one mail. An error in our own code fails this mail only; a database error ends the round."""
    try:
        return deliver(mail, transport, by, away, manner)
    except DatabaseError:  # nothing can be recorded, so nothing more may be sent
        raise
    except Exception as error:
        log.exception("mail %s could not be sent", mail.pk)
        words = f"could not be sent: {type(error).__name__}: {error}".replace("\0", "")
        mail_transitions.doubt(mail, timezone.now(), words, by) if _left(mail) else mail_transitions.fail(
            mail, timezone.now(), words, by
        )
        return SendStatus.REFUSED


def _left(mail: OutgoingMail) -> bool:
    return OutgoingMail.objects.filter(pk=mail.pk, data_at__isnull=False).exists()


def deliver(
    mail: OutgoingMail, transport: Transport, by: str, away: Mapping[str, str], manner: SendConfig = PLAIN
) -> SendStatus:
    """Send a claimed mail, record and return its fate. `away`: who must get no mail, perhaps since it was approved."""
    recipients = [each for each in mail.recipients if each.lower() not in away and each not in mail.settled]
    if not recipients:
        mail_transitions.fail(mail, timezone.now(), "all remaining recipients opted out or bounce", by)
        return SendStatus.REFUSED
    raw = manner.signing.sign(bytes(mail.raw)) if manner.signing else bytes(mail.raw)
    letter = Envelope(mail.message_id, mail.sender, recipients, raw)
    outcome = transport.send(letter, lambda: mail_transitions.begin_data(mail, timezone.now()))
    record(mail, outcome, by)
    if outcome.fate is SendStatus.SENT and manner.sent_folder:
        manner.sent_folder.keep(raw, timezone.now())
    return outcome.fate


def record(mail: OutgoingMail, outcome: SendOutcome, by: str) -> None:
    """Record the outcome of an attempt."""
    now = timezone.now()
    match outcome.fate:
        case SendStatus.SENT:
            mail_transitions.sent(mail, outcome, now, by)
        case SendStatus.LATER:
            mail_transitions.retry_later(mail, now, outcome.words, by)
        case SendStatus.NO_SERVER:
            mail_transitions.retry_later(mail, now, outcome.words, by, no_server=True)
        case SendStatus.REFUSED:
            mail_transitions.refused(mail, outcome, now, by)
        case SendStatus.DOUBT:
            mail_transitions.doubt(mail, now, outcome.words, by)
        case SendStatus.NOT_NOW:
            mail_transitions.release([mail], now, by, "")  # all sending was stopped, or the claim was lost


def worker() -> str:
    """Return the name of this process in records."""
    return f"worker {socket.gethostname()}:{os.getpid()}"


def _rest(until: float) -> bool:
    """Wait for the next mail if it becomes due within the time that is left; return whether to continue."""
    now = timezone.now()
    due = next_due(now)
    wait = (due - now).total_seconds() + 0.01 if due else float("inf")
    if wait > LINGER or time.monotonic() + wait > until:
        return False
    deadline = time.monotonic() + wait
    while (left := deadline - time.monotonic()) > 0 and not mail_transitions.stopped():
        time.sleep(min(left, 0.5))
    return True
