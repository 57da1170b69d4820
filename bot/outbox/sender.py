"""Sends due mail: claim a batch, talk to the server outside any transaction, record each outcome.

Workers claim small batches, oldest first, within the rate limits; they skip rows that another one has locked. Further
mails wait until their report is sent, and a reminder that somebody's mail has overtaken is not sent. The process may
die at any line: `reconcile.sweep` recovers. An error in our own code fails one mail; a database error ends the round,
since what can't be recorded must not be sent.

The Sent folder of a mailbox (IMAP APPEND, RFC 3501) keeps copies for people and as proof of delivery. It is read like
any archive: a mail found there counts as sent, also after a backup was restored.
"""

import imaplib
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import SplitResult, unquote

from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from bot.compose.mail import MADE_BY, POLICY
from bot.compose.policy import QuietHours, Rates, reserve_slot
from bot.mail.message import for_header
from bot.mail.settings import Aliases, BotSettings
from bot.outbox import reconcile
from bot.outbox.drafts import excluded_addresses
from bot.outbox.transports import Envelope, SendOutcome, SendStatus, Signing, Transport, imap_connection, imap_quoted
from tracker.models import (
    DeliveryFailure,
    FailureSource,
    Message,
    OutgoingMail,
    OutgoingState,
    Purpose,
    RateCalendar,
)
from tracker.models.mail import PEOPLE, WAITING
from tracker.services import database, mail_transitions
from tracker.services.database import Lock, database_now

log = logging.getLogger(__name__)

# --- The queue ---

UNLIMITED = Rates()
MOST_ROUNDS = 1000  # that only give mails their turn


def claim_due(
    now: datetime,
    length: timedelta,
    limit: int,
    by: str,
    rates: Rates = UNLIMITED,
    quiet_hours: QuietHours | None = None,
) -> list[OutgoingMail]:
    """Claim up to `limit` due mails in a short transaction. Further mails wait until their report is sent, and all wait
    for the end of the quiet hours.

    Rows that another worker has locked are skipped, so that workers do not wait for each other. Mails that only get a
    later turn because of the rate limits do not keep others from being claimed.
    """
    if morning := quiet_hours.until(now) if quiet_hours else None:
        _put_off(now, morning)
        return []
    for _ in range(MOST_ROUNDS):
        with transaction.atomic():
            due = _due(ready().select_for_update(of=("self",), skip_locked=True), now, limit)
            allowed = _within_rates(due, rates, now) if rates and due else due
            if allowed or not due:
                return mail_transitions.claim(allowed, now, length, by) if allowed else []
    return []


def _put_off(now: datetime, until: datetime) -> None:
    """Put off all due mail, a batch at a time: a database takes only so many keys in a statement."""
    while True:
        with transaction.atomic():
            due = _due(ready().select_for_update(of=("self",), skip_locked=True), now, BATCH)
            if not due:
                return
            OutgoingMail.objects.filter(pk__in=due).update(not_before=until, turn_at=None)


def ready() -> QuerySet[OutgoingMail]:
    """Return the mails that are approved, up to date, and not waiting for their report."""
    report_mails = OutgoingMail.objects.filter(report=OuterRef("report"), purpose=Purpose.REPORT)
    ahead = Exists(report_mails.exclude(state=OutgoingState.SENT))
    first = Q(purpose=Purpose.REPORT) | Q(purpose__startswith=Purpose.ANSWER)
    approved = OutgoingMail.objects.filter(first | ~ahead, state=OutgoingState.APPROVED, stale=False)
    return approved.exclude(_overtaken())


def overtaken_reminders() -> QuerySet[OutgoingMail]:
    """Return the waiting reminders whose reports have since got mail from somebody, whenever it was written."""
    return OutgoingMail.objects.filter(_overtaken(), state__in=WAITING)


def _overtaken() -> Q:
    words = Message.objects.filter(
        report__reminders__mail=OuterRef("pk"), kind__in=PEOPLE, source__received_at__gte=OuterRef("composed_at")
    )
    return Q(purpose__startswith=Purpose.REMINDER) & Q(Exists(words))


def has_due(now: datetime) -> bool:
    """Return whether any mail is due."""
    return bool(_due(ready(), now, 1))


def is_busy() -> bool:
    """Return whether a worker is sending: it continues by itself, so no task needs to be enqueued."""
    return OutgoingMail.objects.filter(state=OutgoingState.SENDING).exists()


def _due(rows: QuerySet[OutgoingMail], now: datetime, limit: int) -> list[int]:
    """Return the keys of due mails: first those that had a start time, then the others. Each query uses an index,
    however long the queue is.
    """
    waited = rows.filter(not_before__lte=now).order_by("not_before", "pk").values_list("pk", flat=True)
    fresh = rows.filter(not_before__isnull=True).order_by("pk").values_list("pk", flat=True)
    keys = list(waited[:limit])
    return keys + list(fresh[: limit - len(keys)]) if len(keys) < limit else keys


def _within_rates(due: list[int], rates: Rates, now: datetime) -> list[int]:
    """Return the mails that the rate limits allow now. Each other mail is given its send time, once."""
    database.take(Lock.RATE_LIMITS)
    rows = list(OutgoingMail.objects.filter(pk__in=due).only("pk", "recipients", "settled", "not_before", "turn_at"))
    left = {row.pk: [recipient for recipient in row.recipients if recipient not in row.settled] for row in rows}
    keys = {key for row in rows for key, _ in rates.keys(left[row.pk])}
    stored = dict(RateCalendar.objects.filter(key__in=keys).values_list("key", "taken"))
    at = datetime.fromisoformat
    taken = {key: [(at(begin), at(end)) for begin, end in slots] for key, slots in stored.items()}
    allowed = []
    for row in sorted(rows, key=lambda row: due.index(row.pk)):
        if row.turn_at and row.turn_at == row.not_before:  # its send time has come
            allowed.append(row.pk)
        elif send_at := reserve_slot(left[row.pk], rates, taken, now):
            OutgoingMail.objects.filter(pk=row.pk).update(not_before=send_at, turn_at=send_at)
        else:
            allowed.append(row.pk)
    calendars = {key: [[begin.isoformat(), end.isoformat()] for begin, end in slots] for key, slots in taken.items()}
    changed = [RateCalendar(key=key, taken=slots) for key, slots in calendars.items() if slots != stored.get(key)]
    RateCalendar.objects.bulk_create(changed, update_conflicts=True, unique_fields=["key"], update_fields=["taken"])
    return allowed


# --- The Sent folder ---

TIMEOUT = 30.0


class SentFolder:
    """`imaps://user:password@host/Sent`, opened at the first copy. Its errors affect no mail: it is already sent."""

    def __init__(self, url: SplitResult) -> None:
        self._url = url
        self._server: imaplib.IMAP4 | None = None
        self._unreachable = False

    def keep(self, raw: bytes, at: datetime) -> bool:
        """File a copy, marked as read; on failure, log the error and return False."""
        if self._unreachable:
            return False
        folder = unquote(self._url.path.strip("/")) or "Sent"
        try:
            if self._server is None:
                self._server = imap_connection(self._url, TIMEOUT)
            copy = (imap_quoted(folder), "(\\Seen)", imaplib.Time2Internaldate(at), raw)
            answer, reply = self._server.append(*copy)
        except (OSError, imaplib.IMAP4.error, UnicodeError) as error:
            self.close()
            self._unreachable = True  # until the next round, so that not every mail waits for it
            log.error("%s: could not store a copy: %s", self._url.hostname, error)
            return False
        if answer != "OK":
            log.error("%s: could not store a copy in %s: %s", self._url.hostname, folder, reply)
        return answer == "OK"

    def close(self) -> None:
        """Log out; errors of a dead connection are ignored."""
        server, self._server, self._unreachable = self._server, None, False
        if server:
            try:
                server.logout()
            except (OSError, imaplib.IMAP4.error):
                pass


# --- Sending ---

BATCH = 100
RECORD_EVERY = 500  # record events after this many mails: batches halve the cost
LINGER = 5.0  # seconds that a call waits for the next due mail

OWN_ENVELOPE = "goes in an envelope of its own: a mail to it is said to have bounced"
ENDS_A_ROUND = frozenset({SendStatus.NO_SERVER, SendStatus.NOT_NOW})


@dataclass(frozen=True, slots=True)
class SendConfig:
    """How a round of sending works. `lease`: how long a worker may take for a batch; `run`: seconds after which a call
    claims no more, 0 for one batch; `aliases`: a person's other addresses, to which an opt-out applies as well.
    """

    lease: timedelta = timedelta(minutes=5)
    run: float = 0.0
    rates: Rates = field(default_factory=Rates)
    quiet_hours: QuietHours | None = None
    never: tuple[str, ...] = ()
    aliases: Aliases = field(default_factory=Aliases)
    signing: Signing = field(default_factory=Signing)
    sent_folder: SentFolder | None = None
    settings: BotSettings | None = None  # for return paths of single recipients


DEFAULT_CONFIG = SendConfig()


def send_due(transport: Transport, config: SendConfig) -> Counter[SendStatus]:
    """Send due mail until none is left, the time is up, the server is gone, or all sending is stopped. Return the
    number of mails by status.

    The process may die at any line: `reconcile.sweep` recovers.
    """
    until, by = time.monotonic() + config.run, worker()
    statuses: Counter[SendStatus] = Counter()
    recorded = 0
    reconcile.sweep(database_now())
    try:
        while not mail_transitions.stopped():
            limit = BATCH if statuses or not config.run else 1  # one mail first, to find out whether the server is up
            batch = claim_due(database_now(), config.lease, limit, by, config.rates, config.quiet_hours)
            outcome = _send(batch, transport, config, until, by)
            statuses += outcome
            if statuses.total() - recorded >= RECORD_EVERY:
                mail_transitions.record_sent(timezone.now())
                recorded = statuses.total()
            if ENDS_A_ROUND & outcome.keys() or time.monotonic() > until or not (batch or _wait_for_due(until)):
                break
        mail_transitions.record_sent(timezone.now())
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
    excluded = excluded_addresses(config.aliases, config.never) if batch else {}
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
        data_began = OutgoingMail.objects.filter(pk=mail.pk, handed_over_at__isnull=False).exists()
        end = mail_transitions.mark_in_doubt if data_began else mail_transitions.fail
        end(mail, timezone.now(), reason, by)
        return SendStatus.REFUSED


def deliver(
    mail: OutgoingMail, transport: Transport, by: str, excluded: Mapping[str, str], config: SendConfig = DEFAULT_CONFIG
) -> SendStatus:
    """Send a claimed mail, record and return its status. `excluded`: who must not get mail any more."""
    recipients = [
        recipient
        for recipient in mail.recipients
        if recipient.lower() not in excluded and recipient not in mail.settled
    ]
    if not recipients:
        mail_transitions.fail(mail, timezone.now(), "all remaining recipients opted out or bounce", by)
        return SendStatus.REFUSED
    raw = config.signing.sign(bytes(mail.raw)) if config.signing else bytes(mail.raw)
    sender, first = _envelope(mail, recipients, config)
    envelope = Envelope(mail.message_id, sender, first, raw)
    outcome = transport.send(envelope, lambda: mail_transitions.begin_data(mail, timezone.now()))
    if rest := [recipient for recipient in recipients if recipient not in first]:
        outcome = _of_envelope(mail, first, dict.fromkeys(rest, OWN_ENVELOPE), outcome)
    record(mail, outcome, by)
    if outcome.status is SendStatus.SENT and config.sent_folder:
        config.sent_folder.keep(raw, timezone.now())
    return outcome.status


def _of_envelope(
    mail: OutgoingMail, recipients: Sequence[str], waiting: Mapping[str, str], outcome: SendOutcome
) -> SendOutcome:
    """Return the outcome of an envelope after which others are waiting: a server that refuses this one, once the mail
    has gone out to somebody, or puts it off for the last time, has said nothing of the others.
    """
    last = outcome.status is SendStatus.LATER and mail.tries + 1 >= mail_transitions.MOST_TRIES
    if mail.sent_at and (last or outcome.status is SendStatus.REFUSED):
        refused = outcome.refused or dict.fromkeys(recipients, outcome.reply)
        return SendOutcome(SendStatus.SENT, outcome.reply, refused, waiting=waiting)
    return replace(outcome, waiting=waiting) if outcome.status is SendStatus.SENT else outcome


def _envelope(mail: OutgoingMail, recipients: list[str], config: SendConfig) -> tuple[str, list[str]]:
    """Return the envelope sender of the next attempt, and the recipients that it goes to.

    Whoever got the mail knows its return path, so a bounce to it proves nothing of the others. An address of which one
    said that it is dead gets the next mail in an envelope of its own, whose return path only it can know: a bounce to
    that one counts (reconcile.py). Such envelopes go one by one, after that of all others; who is put off lets the
    next go first.
    """
    if config.settings is None or len(mail.recipients) == 1:
        return mail.sender, recipients
    lists = {address.lower() for address in mail.lists}
    people = [recipient.lower() for recipient in recipients if recipient.lower() not in lists]
    said = DeliveryFailure.objects.filter(by=FailureSource.BOUNCE, address__in=people).exclude(mail=mail)
    doubted = set(said.values_list("address", flat=True))
    first = [recipient for recipient in recipients if recipient.lower() not in doubted]
    one = recipients[mail.tries % len(recipients)]
    if first and (not mail.tries or one in first):
        return mail.sender, first
    return config.settings.return_path(config.settings.tag_in(mail.sender), mail.message_id, one), [one]


def record(mail: OutgoingMail, outcome: SendOutcome, by: str) -> None:
    """Record the outcome of an attempt."""
    now = timezone.now()
    match outcome.status:
        case SendStatus.SENT:
            mail_transitions.record_accepted(mail, outcome, now, by)
        case SendStatus.LATER:
            mail_transitions.retry_later(mail, now, outcome.reply, by)
        case SendStatus.NO_SERVER:
            mail_transitions.retry_later(mail, now, outcome.reply, by, no_server=True)
        case SendStatus.REFUSED:
            mail_transitions.record_refused(mail, outcome, now, by)
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
    # When the next mail becomes due, None if there is none
    due = ready().filter(not_before__gt=now).order_by("not_before").values_list("not_before", flat=True).first()
    wait = (due - now).total_seconds() + 0.01 if due else float("inf")
    if wait > LINGER or time.monotonic() + wait > until:
        return False
    deadline = time.monotonic() + wait
    while (left := deadline - time.monotonic()) > 0 and not mail_transitions.stopped():
        time.sleep(min(left, 0.5))
    return True


# --- Mail past the outbox ---


def send_unstored(
    local: str,
    address: str,
    subject: str,
    text: str,
    transport: Transport,
    settings: BotSettings,
    now: datetime,
    signing: Signing | None,
) -> SendStatus | None:
    """Send a mail to one person at once, without storing it. `local`: the first part of its Message-ID.

    Return None, and log it, if the address is invalid in a header.
    """
    own_id = f"{local}@{settings.address.partition('@')[2]}"
    message = EmailMessage(policy=POLICY)
    try:
        message["Message-ID"] = f"<{own_id}>"
        message["Date"] = format_datetime(now.replace(microsecond=0))
        message["From"] = f"{for_header(settings.name, 60)} <{settings.address}>"
        message["To"] = address
        message["Subject"] = subject
        message["Auto-Submitted"] = "auto-generated"
        message["X-Mailer"] = MADE_BY
        message.set_content(text, charset="utf-8", cte="8bit")
        raw = message.as_bytes()
    except ValueError as error:
        log.error("no mail %r to %r: %s", subject, address, error)
        return None
    envelope = Envelope(own_id, settings.address, [address], signing.sign(raw) if signing else raw)
    outcome = transport.send(envelope, lambda: not mail_transitions.stopped())
    if outcome.status is not SendStatus.SENT:
        log.warning("the mail %r was not sent: %s", subject, outcome.reply)
    return outcome.status
