"""How outgoing mail moves from state to state: each transition is a conditional UPDATE and a log row.

A second mover moves nothing. People approve, hold, cancel and resend mails, and stop all sending. A worker claims
mails by a lease; if it dies after the bytes began to leave, the mail is in doubt, until a copy in an archive or a
bounce shows that it was sent. Temporary failures are tried again with growing delays for about five days (DESIGN rule
10, RFC 5321 section 4.5.4.1). An address that does not exist, or failed often, gets no more mail; a list is left to
an operator (RFC 3463).

Sending only sets a flag, from which "reported" events are recorded in batches; if a worker dies in between, the next
round finds the flag. For a week after a backup was restored no mail leaves without a person, since it may have left
before.
"""

import random
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db import connection, transaction
from django.db.models import F, QuerySet

from tracker.domain.events import EventData, EventKind, Role
from tracker.models import (
    Archive,
    Correspondent,
    DeliveryFailure,
    Event,
    FailureSource,
    Mailing,
    MailTransition,
    Message,
    OutgoingMail,
    OutgoingState,
    Purpose,
    Restoration,
    SendingStop,
)
from tracker.models.mail import WAITING
from tracker.services import event_log

# --- Archives with copies ---

ARCHIVE_COPIES_LATELY = 100  # recent copies of our own mail to look at
MOST = 20
OWN = "self"  # the kind of a message that we sent (DESIGN section 5)


def archives_with_copies() -> list[Archive]:
    """Return the archives that recently received copies of our mail; all archives if none did. Two queries."""
    lately = Message.objects.filter(kind=OWN, source__archive__isnull=False).order_by("-pk")
    archive_ids = set(lately.values_list("source__archive", flat=True)[:ARCHIVE_COPIES_LATELY])
    rows = Archive.objects.filter(pk__in=archive_ids) if archive_ids else Archive.objects.all()
    return list(rows.order_by("path")[:MOST])


# --- Delivery failures ---

# RFC 3463 section 3: a bad destination address (X.1.x, without those about the sender), or a disabled mailbox.
_DEAD = re.compile(r"\b5\.(?:1\.(?:[0-46]|10)|2\.1)\b")
# Failures of one address, permanent or not; not of the message (X.6), a policy (X.7) or our own server.
_PERSONAL = re.compile(r"\b[45]\.[12]\.\d{1,3}\b")
_STATUS = re.compile(r"\b[245]\.(?!0\.0\b)\d{1,3}\.\d{1,3}\b")  # X.0.0 says nothing (RFC 3463 section 3.1)
_CODE = re.compile(r"\b[245]\d\d\b")
_NO_SUCH_USER = re.compile(
    r"\bno such (?:user|mailbox|recipient|address)|\b(?:user|recipient|mailbox|address|account)\b.{0,80}?"
    r"\b(?:unknown|not found|does not exist|doesn't exist|invalid|disabled|inactive)|\bunknown (?:user|recipient)",
    re.I,
)
OFTEN = 3  # mails that failed for an address (as for a full mailbox) within …
LATELY = timedelta(days=30)
MAX_REPLY_LENGTH = 500


def is_dead(reply: str) -> bool:
    """Return whether a failure means that the address does not exist, rather than that this mail was rejected."""
    if _DEAD.search(reply):
        return True
    if _STATUS.search(reply) or "sender" in reply.lower():  # which is us
        return False
    code = _CODE.search(reply)
    return (code is None or code[0] in ("550", "551", "552", "553")) and bool(_NO_SUCH_USER.search(reply))


def record_failures(
    mail: OutgoingMail, failures: Mapping[str, str], by: FailureSource, now: datetime, *, counts: bool = True
) -> None:
    """Record the delivery failures of one mail. A dead address, or one with OFTEN failures lately, is bouncing from
    now on. A list never is: an operator must handle that. `counts` False: anybody may have said so; it marks nobody.
    """
    rows = [
        DeliveryFailure(
            mail=mail,
            address=recipient.lower(),
            words=reply[:MAX_REPLY_LENGTH],
            by=by,
            dead=is_dead(reply),
            personal=bool(_PERSONAL.search(reply)),
            at=now,
        )
        for recipient, reply in failures.items()
    ]
    DeliveryFailure.objects.bulk_create(rows, ignore_conflicts=True)
    if not counts:
        return
    # One failure says nothing about a list's other subscribers.
    lists = {list_address.lower() for list_address in mail.lists}
    lately = DeliveryFailure.objects.filter(at__gt=now - LATELY, personal=True)
    for recipient, reply in failures.items():
        address = recipient.lower()
        if address in lists or not (is_dead(reply) or lately.filter(address=address).count() >= OFTEN):
            continue
        note = f"{now:%Y-%m-%d}: {reply}"[:MAX_REPLY_LENGTH]
        values = {"mailing": Mailing.BOUNCING, "note": note, "since": now}
        row, new = Correspondent.objects.get_or_create(address=address, defaults=values)
        if not new and row.mailing == Mailing.OPTED_IN:  # an opt-out or a stop stays
            Correspondent.objects.filter(pk=row.pk).update(**values)


def clear_bounce(address: str, at: datetime) -> None:
    """Someone wrote from an address: clear a bouncing mark that is older than that."""
    Correspondent.objects.filter(address=address.lower(), mailing=Mailing.BOUNCING, since__lt=at).delete()


# --- Recording sent mail ---

AT_ONCE = 250


def record_sent(now: datetime, mails: QuerySet[OutgoingMail] | None = None) -> None:
    """Record the missing "reported" events of these mails (by default, of all)."""
    rows = (OutgoingMail.objects.all() if mails is None else mails).filter(unrecorded=True)
    rows = rows.only("message_id", "subject", "sent_at", "report__tree__name").select_related("report__tree")
    while batch := list(rows.order_by("pk")[:AT_ONCE]):
        events: list[Event] = []
        for mail in batch:
            assert mail.sent_at
            value = EventData(
                key=f"{EventKind.REPORTED}:{mail.message_id}",
                kind=EventKind.REPORTED,
                occurred_at=mail.sent_at.replace(microsecond=0),  # like the Date of a reply, which must not seem older
                role=Role.REPORTER,
                message_id=mail.message_id,
                tree=mail.about.tree.name if mail.about.tree else "",
            )
            events.append(event_log.event_row(mail.about, value, now, mail.subject))
        with transaction.atomic():
            event_log.refold(event_log.append(events))
            OutgoingMail.objects.filter(pk__in=[mail.pk for mail in batch]).update(unrecorded=False)


# --- After a restore ---

CAREFUL = timedelta(days=7)


def why_careful(now: datetime) -> str:
    """Return why a mail that is composed now has to wait for a person; "" if there is no reason."""
    last = Restoration.objects.filter(restored_at__gt=now - CAREFUL).order_by("-restored_at").first()
    if last is None:
        return ""
    backup, restored = f"{last.backup_at:%Y-%m-%d %H:%M}", f"{last.restored_at:%Y-%m-%d %H:%M}"
    return f"restored on {restored} from a backup of {backup} UTC: check in the archives that it was not sent before"


# --- Transitions and people's actions ---

S = OutgoingState
# User actions: the state that each leads to, and the states in which it is allowed.
ACTIONS: Mapping[str, tuple[OutgoingState, frozenset[OutgoingState]]] = {
    "approve": (S.APPROVED, frozenset({S.COMPOSED, S.HELD})),
    "hold": (S.HELD, WAITING),
    "cancel": (S.CANCELLED, frozenset({*WAITING, S.FAILED, S.IN_DOUBT})),
    "resend": (S.APPROVED, frozenset({S.IN_DOUBT, S.FAILED})),
}
MAX_NOTE_LENGTH = 1000
UNFINISHED_RESTORE = "a restore has not finished: run it again with --replace"  # the reason of a stop that stays


class ServerAnswer(Protocol):
    """What a transport says of one mail: recipients with the server's words for each, its last words, and to whom the
    mail goes next, with the reason.
    """

    @property
    def refused(self) -> Mapping[str, str]: ...
    @property
    def deferred(self) -> Mapping[str, str]: ...
    @property
    def waiting(self) -> Mapping[str, str]: ...
    @property
    def reply(self) -> str: ...


def record_created(mail: OutgoingMail, by: str) -> None:
    """Log the creation of a mail, in the transaction that creates it."""
    MailTransition.objects.create(mail=mail, became=mail.state, at=mail.composed_at, by=by, words=mail.reason)


def transition(
    rows: QuerySet[OutgoingMail], became: OutgoingState, by: str, at: datetime, note: str = "", **columns: Any
) -> list[int]:
    """Move the mails selected by a query, in whatever states, with one UPDATE. Returns their keys.

    The rows are locked first, so that exactly those selected move and their previous states are logged.
    """
    note = note[:MAX_NOTE_LENGTH]
    with transaction.atomic():
        states = dict(rows.order_by("pk").select_for_update(of=("self",)).values_list("pk", "state"))
        if states:
            OutgoingMail.objects.filter(pk__in=states).update(state=became, **columns)
            MailTransition.objects.bulk_create(
                MailTransition(mail_id=pk, was=was, became=became, at=at, by=by, words=note)
                for pk, was in states.items()
            )
    return list(states)


def transition_one(
    rows: QuerySet[OutgoingMail],
    pk: int,
    was: OutgoingState,
    became: OutgoingState,
    by: str,
    at: datetime,
    note: str = "",
    **columns: Any,
) -> bool:
    """Move one mail from a known state. Returns False and changes nothing if it is no longer in that state."""
    note = note[:MAX_NOTE_LENGTH]
    with transaction.atomic():
        if rows.filter(pk=pk, state=was).update(state=became, **columns) != 1:
            return False
        MailTransition.objects.create(mail_id=pk, was=was, became=became, at=at, by=by, words=note)
    return True


def add_note(mail: OutgoingMail, by: str, at: datetime, note: str) -> None:
    """Log a remark on a mail without changing its state."""
    MailTransition.objects.create(
        mail=mail, was=mail.state, became=mail.state, at=at, by=by, words=note[:MAX_NOTE_LENGTH]
    )


def apply_action(
    pk: int, action: str, person: str, now: datetime, note: str = "", composed_at: datetime | None = None
) -> bool:
    """Approve, hold, cancel or resend. Returns False if the state does not allow it, or if the mail is to be recomposed
    or was since `composed_at`.

    A mail that some recipients already have is not cancelled but marked sent: the others do not get it.
    """
    became, within = ACTIONS[action]
    rows = OutgoingMail.objects.filter(pk=pk, state__in=within)
    if action == "approve":  # a stale mail is to be recomposed: the user has not seen the new one
        rows = rows.filter(stale=False, **({"composed_at": composed_at} if composed_at else {}))
    note = note.replace("\0", "")
    anew = {"not_before": None, "tries": 0, "connection_attempts": 0}
    columns = {"reason": note[:MAX_NOTE_LENGTH], "decided_by_person": True, **FREED, **anew}
    if action == "cancel" and transition(
        rows.exclude(sent_at=None), S.SENT, person, now, note or "cancelled", **columns
    ):
        return True
    return bool(transition(rows, became, person, now, note, **columns))


def is_editable(mail: OutgoingMail) -> bool:
    """Whether its text may still be edited: no server can have seen it. Answers to commands are as they are."""
    return bool(mail.body) and mail.state in WAITING and not mail.attempts and mail.sent_at is None


def edit(mail: OutgoingMail, raw: bytes, body: str, person: str, now: datetime) -> bool:
    """Give a waiting mail another text. A person has to approve it, once more if somebody has. Returns False if it is
    no longer as it was when the person saw it.
    """
    rows = OutgoingMail.objects.filter(pk=mail.pk, state=mail.state, composed_at=mail.composed_at, attempts=0)
    became = S.HELD if mail.state == S.HELD else S.COMPOSED
    columns = {"raw": raw, "body": body, "composed_at": now, "edited_by": person, "decided_by_person": True}
    return bool(transition(rows, became, person, now, "edited its text", **columns))


def compose_again(mail: OutgoingMail, person: str, now: datetime) -> bool:
    """Drop what a person wrote into a waiting mail of a report: it is composed again within a minute, and held."""
    rows = OutgoingMail.objects.filter(pk=mail.pk, state__in=WAITING, attempts=0, purpose=Purpose.REPORT)
    note = "the edited text was dropped"
    columns = {"edited_by": "", "stale": True, "looked_at": None, "reason": note}
    return bool(transition(rows.exclude(edited_by=""), S.HELD, person, now, note, **columns))


def stopped() -> SendingStop | None:
    """Return the stop in force, or None."""
    return SendingStop.objects.filter(ended_at__isnull=True).first()


def stop_sending(person: str, now: datetime, reason: str = "") -> bool:
    """Stop all sending from now on, in every worker. Returns False if it is stopped already."""
    with transaction.atomic():
        if stopped():
            return False
        SendingStop.objects.create(at=now, by=person, reason=reason.replace("\0", "")[:MAX_NOTE_LENGTH])
    return True


def resume_sending(person: str, now: datetime) -> bool:
    """Resume sending. Returns False if it was not stopped, or if a restore was cut off: some of its mails may have been
    sent since the backup, and nothing says yet which.
    """
    stops = SendingStop.objects.filter(ended_at__isnull=True).exclude(reason=UNFINISHED_RESTORE)
    return bool(stops.update(ended_at=now, ended_by=person))


# --- Transitions by a worker ---

MOST_TRIES = 24  # with growing delays: about five days (RFC 5321 section 4.5.4.1)
MAX_CONNECTION_ATTEMPTS = 480  # at a server that does not answer: also about five days
FIRST, LONGEST, LONGEST_CONNECTION_DELAY = 30.0, 6 * 3600.0, 900.0  # seconds between two of them
# The columns that sending needs; `body` and `people` are not loaded.
_NEEDED = (
    "message_id", "report", "purpose", "sender", "recipients", "settled", "lists", "raw",
    "attempts", "tries", "connection_attempts", "sent_at",
)  # fmt: skip
FREED = {"lease_until": None, "handed_over_at": None}
_OURS = (S.SENDING, S.IN_DOUBT)  # the states in which our attempt may find it
# The statements that every mail needs are plain SQL: the ORM takes longer to build these three than the database to
# execute them. benchmarks/outbox.py: 274 mails a second so, 166 with the ORM (2.2 and 3.5 times smtplib's time).
_MAIL, _LOG, _STOP = (model._meta.db_table for model in (OutgoingMail, MailTransition, SendingStop))
_BEGIN_DATA = (
    f"UPDATE {_MAIL} SET handed_over_at = %s"
    " WHERE id = %s AND attempts = %s AND state = 'sending' AND handed_over_at IS NULL"
    f" AND NOT EXISTS (SELECT 1 FROM {_STOP} WHERE ended_at IS NULL)"
)
_SENT_TO_ALL = (  # the columns of `_sent_columns`
    f"UPDATE {_MAIL} SET state = 'sent', sent_at = %s, unrecorded = (unrecorded OR %s), reason = '',"
    " lease_until = NULL, handed_over_at = NULL, not_before = NULL"
    " WHERE id = %s AND attempts = %s AND state = 'sending'"
)
_LOG_SENT = f"INSERT INTO {_LOG} (mail_id, was, became, at, by, words) VALUES (%s, 'sending', 'sent', %s, %s, %s)"


def claim(keys: Sequence[int], now: datetime, lease: timedelta, by: str) -> list[OutgoingMail]:
    """Claim approved mails for sending with one conditional UPDATE: all or none. The caller's transaction is short."""
    with transaction.atomic():
        mine = OutgoingMail.objects.filter(pk__in=keys, state=S.APPROVED, stale=False)
        taken = {"state": S.SENDING, "lease_until": now + lease, "attempts": F("attempts") + 1, "handed_over_at": None}
        if mine.update(**taken) != len(keys):
            transaction.set_rollback(True)  # on databases without row locks: another worker was faster
            return []
        MailTransition.objects.bulk_create(
            MailTransition(mail_id=pk, was=S.APPROVED, became=S.SENDING, at=now, by=by) for pk in keys
        )
    return list(OutgoingMail.objects.filter(pk__in=keys, state=S.SENDING).only(*_NEEDED).order_by("pk"))


def _claimed(mail: OutgoingMail) -> QuerySet[OutgoingMail]:
    """Return the row only while this attempt's claim holds: a worker that lost its lease must not change it."""
    return OutgoingMail.objects.filter(attempts=mail.attempts)


def release(mails: Sequence[OutgoingMail], now: datetime, by: str, note: str) -> None:
    """Return claimed mails that were not tried to the queue."""
    for mail in mails:
        back = {**FREED, "attempts": mail.attempts - 1}
        transition_one(
            _claimed(mail).filter(handed_over_at=None), mail.pk, S.SENDING, S.APPROVED, by, now, note, **back
        )


def begin_data(mail: OutgoingMail, now: datetime) -> bool:
    """Record that the last step begins; a worker that dies after this leaves the mail in doubt.

    Return False if it must not be sent: the lease was lost to another worker, or all sending was stopped.
    """
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_DATA, [_column(now), mail.pk, mail.attempts])
        return bool(cursor.rowcount == 1)


def record_accepted(mail: OutgoingMail, outcome: ServerAnswer, now: datetime, by: str) -> None:
    """Record that a server accepted the mail. It is sent again to the deferred recipients, after a delay and a limited
    number of times, and to those whose turn is still to come.
    """
    if not (outcome.refused or outcome.deferred or outcome.waiting):
        if not _sent_to_all(mail, now, by, outcome.reply[:MAX_NOTE_LENGTH]):
            _set_sent(mail, now, now, by, f"after its lease expired: {outcome.reply}")
        return
    columns = _sent_columns(mail, now)
    deferred = outcome.deferred if mail.tries + 1 < MOST_TRIES else {}
    refused = dict(outcome.refused) if deferred else {**outcome.refused, **outcome.deferred}
    left = {**deferred, **outcome.waiting}
    # Who was rejected, and who was put off, with the server's words for each; and who is next
    replies = {"rejected": refused, "deferred": deferred, "next": outcome.waiting}
    note = "; ".join(
        f"{name} for {'; '.join(f'{address}: {reply}' for address, reply in by_address.items())}"
        for name, by_address in replies.items()
        if by_address
    )
    columns["reason"] = note[:MAX_NOTE_LENGTH]
    if deferred:
        columns["not_before"] = now + _delay(mail, mail.tries, LONGEST)
        columns["tries"] = mail.tries + 1
    elif outcome.waiting:  # each of them has all its tries
        columns["tries"] = 0
    if left:
        columns["settled"] = [recipient for recipient in mail.recipients if recipient not in left]
    became = S.APPROVED if left else S.SENT
    with transaction.atomic():
        # If our lease expired, the mail may be in doubt; this resolves it.
        if not any(transition_one(_claimed(mail), mail.pk, was, became, by, now, note, **columns) for was in _OURS):
            _set_sent(mail, now, now, by, f"after its lease expired: {note}")
            refused = {**outcome.refused, **outcome.deferred, **outcome.waiting}
        if refused:
            record_failures(mail, refused, FailureSource.SERVER, now)


def _sent_to_all(mail: OutgoingMail, now: datetime, by: str, note: str) -> bool:
    """Record that a server accepted the mail for everybody. Return False and change nothing if the claim was lost."""
    columns = _sent_columns(mail, now)
    values = [_column(columns["sent_at"]), "unrecorded" in columns, mail.pk, mail.attempts]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SENT_TO_ALL, values)
        if cursor.rowcount != 1:
            return False
        cursor.execute(_LOG_SENT, [mail.pk, _column(now), by, note])
    return True


def _column(at: datetime) -> Any:
    """Return a time as the database stores it."""
    return connection.ops.adapt_datetimefield_value(at)


def _set_sent(mail: OutgoingMail, at: datetime, now: datetime, by: str, note: str) -> bool:
    """Mark a mail as sent from any state, so that it is not sent again. Return whether the state changed."""
    rows = OutgoingMail.objects.filter(pk=mail.pk).exclude(state=S.SENT)
    return bool(transition(rows, S.SENT, by, now, note, **_sent_columns(mail, at)))


def _sent_columns(mail: OutgoingMail, at: datetime) -> dict[str, Any]:
    """Return the columns of a mail that was sent; `record_sent` records the event of a report later, in batches."""
    columns: dict[str, Any] = {**FREED, "reason": "", "not_before": None, "sent_at": mail.sent_at or at}
    return columns | ({"unrecorded": True} if mail.purpose == Purpose.REPORT and mail.sent_at is None else {})


def mark_sent(message_id: str, at: datetime, now: datetime, by: str = "archive", note: str = "") -> bool:
    """Mark a mail as sent on delivery evidence (an archived copy or a bounce), and record the event. Return whether
    its state changed.

    A mail that was delivered to some recipients only is left as it is.
    """
    mail = OutgoingMail.objects.filter(message_id=message_id).first()
    if mail is None or mail.state == S.SENT or mail.settled:
        return False
    with transaction.atomic():
        if not _set_sent(mail, at, now, by, note):
            return False
        record_sent(now, OutgoingMail.objects.filter(pk=mail.pk))
    return True


def retry_later(mail: OutgoingMail, now: datetime, reason: str, by: str, *, no_server: bool = False) -> None:
    """Retry after a temporary failure, with growing delays and a limit (DESIGN rule 10)."""
    before, most, longest = (
        (mail.connection_attempts, MAX_CONNECTION_ATTEMPTS, LONGEST_CONNECTION_DELAY)
        if no_server
        else (mail.tries, MOST_TRIES, LONGEST)
    )
    if before + 1 >= most:
        fail(mail, now, f"gave up after {before + 1} attempts: {reason}", by)
        if mail.settled and not no_server:
            record_failures(mail, dict.fromkeys(_unsettled(mail), reason), FailureSource.SERVER, now)
        return
    note = reason[:MAX_NOTE_LENGTH]
    count = {"connection_attempts" if no_server else "tries": before + 1}
    columns = {"not_before": now + _delay(mail, before, longest), "reason": note, **count, **FREED}
    transition_one(_claimed(mail), mail.pk, S.SENDING, S.APPROVED, by, now, note, **columns)


def record_refused(mail: OutgoingMail, outcome: ServerAnswer, now: datetime, by: str) -> None:
    """Record a permanent failure: all recipients or the content were rejected."""
    fail(mail, now, outcome.reply, by)
    if outcome.refused or mail.settled:
        words = outcome.refused or dict.fromkeys(_unsettled(mail), outcome.reply)
        record_failures(mail, words, FailureSource.SERVER, now)


def _unsettled(mail: OutgoingMail) -> list[str]:
    return [recipient for recipient in mail.recipients if recipient not in mail.settled]


def fail(mail: OutgoingMail, now: datetime, reason: str, by: str) -> None:
    """Mark a mail as failed, with the reason; as sent if some recipients have got it."""
    note = reason[:MAX_NOTE_LENGTH]
    became = S.SENT if mail.settled else S.FAILED
    transition_one(_claimed(mail), mail.pk, S.SENDING, became, by, now, note, reason=note, not_before=None, **FREED)


def mark_in_doubt(mail: OutgoingMail, now: datetime, reason: str, by: str) -> None:
    """Mark a mail as in doubt: the server may or may not have accepted it."""
    note = reason[:MAX_NOTE_LENGTH]
    transition_one(_claimed(mail), mail.pk, S.SENDING, S.IN_DOUBT, by, now, note, reason=note, lease_until=None)


def _delay(mail: OutgoingMail, before: int, longest: float) -> timedelta:
    """Return the delay before the next attempt: it grows fourfold each time, up to `longest` seconds, with 25% jitter,
    so that many mails do not retry at once.
    """
    wait = min(FIRST * 4 ** min(before, 10), longest)
    spread = random.Random(f"{mail.message_id} {mail.attempts}").uniform(0.75, 1.25)
    return timedelta(seconds=wait * spread)
