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
from bot.mail.people.mailmap import Aliases
from bot.outbox import recovery
from bot.outbox.context.policy_context import excluded_addresses
from bot.outbox.due_mail import claim_due, next_due
from bot.outbox.sent_folder import SentFolder
from bot.outbox.signing import Signing
from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus, Transport
from tracker.models import OutgoingMail
from tracker.services import mail_transitions
from tracker.services.clock import database_now
from tracker.services.outgoing import record_sent

BATCH = 100
RECORD_EVERY = 500  # record events after this many mails: batches halve the cost
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


DEFAULT_CONFIG = SendConfig()


def send_due(transport: Transport, config: SendConfig) -> Counter[SendStatus]:
    """Send due mail until none is left, the time is up, the server is gone, or all sending is stopped. Return the
    number of mails by status.

    The process may die at any line: `recovery.sweep` recovers.
    """
    until, by = time.monotonic() + config.run, worker()
    statuses: Counter[SendStatus] = Counter()
    recorded = 0
    recovery.sweep(database_now())
    try:
        while not mail_transitions.stopped():
            limit = BATCH if statuses or not config.run else 1  # one mail first, to find out whether the server is up
            batch = claim_due(database_now(), config.lease, limit, by, config.rates)
            outcome = _send(batch, transport, config, until, by)
            statuses += outcome
            if statuses.total() - recorded >= RECORD_EVERY:
                record_sent.record_sent(timezone.now())
                recorded = statuses.total()
            if ENDS_A_ROUND & outcome.keys() or time.monotonic() > until or not (batch or _wait_for_due(until)):
                break
        record_sent.record_sent(timezone.now())
    finally:
        try:
            transport.close()
        finally:
            if config.sent_folder:
                config.sent_folder.close()
    return statuses


def _send(
    batch: Sequence[OutgoingMail], transport: Transport, config: SendConfig, until: float, by: str
) -> Counter[SendStatus]:
    """Send one batch. Mails for which no time or no server is left go back to the queue."""
    statuses: Counter[SendStatus] = Counter()
    excluded = excluded_addresses(config.aliases) if batch else {}
    half = time.monotonic() + config.lease.total_seconds() / 2  # the other half is for the mail in progress
    for number, mail in enumerate(batch):
        status = _try_send(mail, transport, config, by, excluded)
        statuses[status] += 1
        rest = batch[number + 1 :]
        if status in ENDS_A_ROUND:
            mail_transitions.release(rest, timezone.now(), by, "")
            break
        if rest and (time.monotonic() > half or (config.run and time.monotonic() > until)):
            mail_transitions.release(rest, timezone.now(), by, "no time left")
            break
    return statuses


def _try_send(
    mail: OutgoingMail, transport: Transport, config: SendConfig, by: str, excluded: Mapping[str, str]
) -> SendStatus:
    """Send one mail. An error in our own code fails this mail only; a database error ends the round."""
    try:
        return deliver(mail, transport, by, excluded, config)
    except DatabaseError:  # nothing can be recorded, so nothing more may be sent
        raise
    except Exception as error:
        log.exception("mail %s could not be sent", mail.pk)
        reason = f"could not be sent: {type(error).__name__}: {error}".replace("\0", "")
        mail_transitions.mark_in_doubt(mail, timezone.now(), reason, by) if _data_began(
            mail
        ) else mail_transitions.fail(mail, timezone.now(), reason, by)
        return SendStatus.REFUSED


def _data_began(mail: OutgoingMail) -> bool:
    return OutgoingMail.objects.filter(pk=mail.pk, handed_over_at__isnull=False).exists()


def deliver(
    mail: OutgoingMail, transport: Transport, by: str, excluded: Mapping[str, str], config: SendConfig = DEFAULT_CONFIG
) -> SendStatus:
    """Send a claimed mail, record and return its status. `excluded`: who must get no mail by now."""
    recipients = [each for each in mail.recipients if each.lower() not in excluded and each not in mail.settled]
    if not recipients:
        mail_transitions.fail(mail, timezone.now(), "all remaining recipients opted out or bounce", by)
        return SendStatus.REFUSED
    raw = config.signing.sign(bytes(mail.raw)) if config.signing else bytes(mail.raw)
    envelope = Envelope(mail.message_id, mail.sender, recipients, raw)
    outcome = transport.send(envelope, lambda: mail_transitions.begin_data(mail, timezone.now()))
    record(mail, outcome, by)
    if outcome.status is SendStatus.SENT and config.sent_folder:
        config.sent_folder.keep(raw, timezone.now())
    return outcome.status


def record(mail: OutgoingMail, outcome: SendOutcome, by: str) -> None:
    """Record the outcome of an attempt."""
    now = timezone.now()
    match outcome.status:
        case SendStatus.SENT:
            mail_transitions.sent(mail, outcome, now, by)
        case SendStatus.LATER:
            mail_transitions.retry_later(mail, now, outcome.reply, by)
        case SendStatus.NO_SERVER:
            mail_transitions.retry_later(mail, now, outcome.reply, by, no_server=True)
        case SendStatus.REFUSED:
            mail_transitions.refused(mail, outcome, now, by)
        case SendStatus.IN_DOUBT:
            mail_transitions.mark_in_doubt(mail, now, outcome.reply, by)
        case SendStatus.NOT_NOW:
            mail_transitions.release([mail], now, by, "")  # all sending was stopped, or the claim was lost


def worker() -> str:
    """Return the name of this process in records."""
    return f"worker {socket.gethostname()}:{os.getpid()}"


def _wait_for_due(until: float) -> bool:
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
