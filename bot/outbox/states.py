"""What a worker does to an outgoing mail, and what is learned of it: each a conditional UPDATE with its line in the
record, so that a second mover moves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from bot.outbox import quick, refusals, telling
from bot.outbox.transport.port import Outcome
from tracker import moves
from tracker.models import OutgoingMail, OutgoingState, Purpose, RefusedBy

S = OutgoingState
MOST_TRIES = 24  # at growing distances: about five days (RFC 5321 section 4.5.4.1)
MOST_KNOCKS = 480  # at a server that does not answer: about five days, too
FIRST, LONGEST, LONGEST_KNOCK = 30.0, 6 * 3600.0, 900.0  # seconds between two of them
# What sending looks at: the text of a mail, and who was thought of, stay where they are.
_NEEDED = (
    *("message_id", "report", "purpose", "sender", "recipients", "settled", "lists", "raw"),
    *("attempts", "tries", "knocks", "sent_at"),
)
FREED = {"lease_until": None, "data_at": None}
_OURS = (S.SENDING, S.IN_DOUBT)  # where an attempt of ours may have left it


def claim(found: Sequence[int], now: datetime, lease: timedelta, by: str) -> list[OutgoingMail]:
    """Take approved mails for sending, all by one conditional UPDATE, or none; the caller's transaction is short."""
    with transaction.atomic():
        mine = OutgoingMail.objects.filter(pk__in=found, state=S.APPROVED, stale=False)
        taken = {"state": S.SENDING, "lease_until": now + lease, "attempts": F("attempts") + 1, "data_at": None}
        if mine.update(**taken) != len(found):
            transaction.set_rollback(True)  # where rows can't be locked, another worker was faster
            return []
        quick.record_claims(found, now, by)
    return list(OutgoingMail.objects.filter(pk__in=found, state=S.SENDING).only(*_NEEDED).order_by("pk"))


def _held(mail: OutgoingMail) -> QuerySet[OutgoingMail]:
    """The row, as long as it is the claim of this attempt: a worker that lost its lease has no say any more."""
    return OutgoingMail.objects.filter(attempts=mail.attempts)


def release(mails: Sequence[OutgoingMail], now: datetime, by: str, words: str) -> None:
    """Give back mails that were claimed and not tried."""
    for mail in mails:
        back = {**FREED, "attempts": mail.attempts - 1}
        moves.step(_held(mail).filter(data_at=None), mail.pk, S.SENDING, S.APPROVED, by, now, words, **back)


def begin_data(mail: OutgoingMail, now: datetime) -> bool:
    """Write down that the mail is about to be the server's. From here on, a death leaves a doubt.

    False where it must not go: the lease was lost, and somebody else sends it, or all sending was stopped.
    """
    return quick.begin_data(mail, now)


def sent(mail: OutgoingMail, outcome: Outcome, now: datetime, by: str) -> None:
    """A server took it. For whom it asked to come again, it goes again: to these alone. The report is told by
    `telling`, a little later and for many at once.
    """
    untold = mail.purpose == Purpose.REPORT and mail.sent_at is None
    if not outcome.refused and not outcome.deferred:
        if not quick.sent(mail, mail.sent_at or now, untold, now, by, outcome.words):
            _went_out(mail, now, now, by, f"after its lease had run out: {outcome.words}")
        return
    again = bool(outcome.deferred) and mail.tries + 1 < MOST_TRIES
    refused = dict(outcome.refused) if again else {**outcome.refused, **outcome.deferred}
    words = _not_taken(refused, outcome.deferred if again else {})
    columns: dict[str, Any] = {
        **FREED,
        "reason": words[: moves.MOST_WORDS],
        "sent_at": mail.sent_at or now,
        "not_before": now + _distance(mail, mail.tries, LONGEST) if again else None,
        **({"untold": True} if untold else {}),
    }
    if again:
        columns["tries"] = mail.tries + 1
        columns["settled"] = [each for each in mail.recipients if each not in outcome.deferred]
    became = S.APPROVED if again else S.SENT
    with transaction.atomic():
        # Where our lease had run out, it may be in doubt by now: not any more.
        if not any(moves.step(_held(mail), mail.pk, was, became, by, now, words, **columns) for was in _OURS):
            _went_out(mail, now, now, by, f"after its lease had run out: {words}")
            refused = {**outcome.refused, **outcome.deferred}
        if refused:
            refusals.note(mail, refused, RefusedBy.SERVER, now)


def _went_out(mail: OutgoingMail, at: datetime, now: datetime, by: str, words: str) -> bool:
    """Whatever the row says: it did go out, and does not again."""
    rows = OutgoingMail.objects.filter(pk=mail.pk).exclude(state=S.SENT)
    untold = mail.purpose == Purpose.REPORT and mail.sent_at is None
    columns: dict[str, Any] = {**FREED, "reason": "", "not_before": None, "sent_at": mail.sent_at or at}
    if untold:
        columns["untold"] = True
    return bool(moves.move(rows, S.SENT, by, now, words, **columns))


def mark_sent(message_id: str, at: datetime, now: datetime, by: str = "archive", words: str = "") -> bool:
    """It went out, as was seen in an archive, or by what came back. The report is told from now on.

    Of a mail that some have got and others have not, it tells nothing new.
    """
    mail = OutgoingMail.objects.filter(message_id=message_id).first()
    if mail is None or mail.state == S.SENT or mail.settled:
        return False
    with transaction.atomic():
        if not _went_out(mail, at, now, by, words):
            return False
        telling.tell_of_sent(now, OutgoingMail.objects.filter(pk=mail.pk))
    return True


def retry_later(mail: OutgoingMail, now: datetime, reason: str, by: str, *, no_server: bool = False) -> None:
    """Refused for now, or not reached: again after a growing while, and not for ever (DESIGN rule 10)."""
    before, most, longest = (
        (mail.knocks, MOST_KNOCKS, LONGEST_KNOCK) if no_server else (mail.tries, MOST_TRIES, LONGEST)
    )
    if before + 1 >= most:
        fail(mail, now, f"gave up after {before + 1} attempts: {reason}", by)
        return
    words = reason[: moves.MOST_WORDS]
    count = {"knocks" if no_server else "tries": before + 1}
    columns = {"not_before": now + _distance(mail, before, longest), "reason": words, **count, **FREED}
    moves.step(_held(mail), mail.pk, S.SENDING, S.APPROVED, by, now, words, **columns)


def refused(mail: OutgoingMail, outcome: Outcome, now: datetime, by: str) -> None:
    """Turned down for good, by all or for its content."""
    fail(mail, now, outcome.words, by)
    left = [each for each in mail.recipients if each not in mail.settled]
    if outcome.refused or mail.settled:
        refusals.note(mail, outcome.refused or dict.fromkeys(left, outcome.words), RefusedBy.SERVER, now)


def fail(mail: OutgoingMail, now: datetime, reason: str, by: str) -> None:
    """Refused for good, in the server's words; where some have got it, it is done without the others."""
    words = reason[: moves.MOST_WORDS]
    became = S.SENT if mail.settled else S.FAILED
    moves.step(_held(mail), mail.pk, S.SENDING, became, by, now, words, reason=words, not_before=None, **FREED)


def doubt(mail: OutgoingMail, now: datetime, reason: str, by: str) -> None:
    """Nobody knows whether the server took it."""
    words = reason[: moves.MOST_WORDS]
    moves.step(_held(mail), mail.pk, S.SENDING, S.IN_DOUBT, by, now, words, reason=words, lease_until=None)


def _distance(mail: OutgoingMail, before: int, longest: float) -> timedelta:
    """How long to wait when it failed so often before: four times as long as the last time up to the longest, and a
    quarter more or less, so that a hundred mails do not come back at once.
    """
    wait = min(FIRST * 4 ** min(before, 10), longest)
    spread = random.Random(f"{mail.message_id} {mail.attempts}").uniform(0.75, 1.25)
    return timedelta(seconds=wait * spread)


def _not_taken(refused: dict[str, str], deferred: object) -> str:
    said = [f"{each}: {words}" for each, words in refused.items()]
    text = f"not taken for {'; '.join(said)}" if said else ""
    later = [f"{each}: {words}" for each, words in deferred.items()] if isinstance(deferred, dict) else []
    return "; ".join(part for part in (text, f"not yet taken for {'; '.join(later)}" if later else "") if part)
