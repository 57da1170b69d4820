"""How outgoing mail moves from state to state: conditional UPDATEs, each with its line in the mail's record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from tracker.models import Move, OutgoingMail, OutgoingState, SendingStop

S = OutgoingState
WAITING = frozenset({S.COMPOSED, S.HELD, S.APPROVED})  # it has not gone out, and nobody is at it
# What a person's word does: the state that it leads to, and the states that it is obeyed in.
BY_HAND: Mapping[str, tuple[OutgoingState, frozenset[OutgoingState]]] = {
    "approve": (S.APPROVED, frozenset({S.COMPOSED, S.HELD})),
    "hold": (S.HELD, WAITING),
    "cancel": (S.CANCELLED, frozenset({*WAITING, S.FAILED, S.IN_DOUBT})),
    "resend": (S.APPROVED, frozenset({S.IN_DOUBT, S.FAILED})),
}
MOST_WORDS = 1000


def came_into_being(mail: OutgoingMail, by: str) -> None:
    """The first line of a record; in the transaction that creates the mail."""
    Move.objects.create(mail=mail, became=mail.state, at=mail.composed_at, by=by, words=mail.reason)


def move(
    rows: QuerySet[OutgoingMail], became: OutgoingState, by: str, at: datetime, words: str = "", **columns: Any
) -> list[int]:
    """Move the mails of a query, whatever states it allows, with one UPDATE; returns the keys of those that moved.

    The rows are locked first, so that what is moved is what the query says, and the record tells where from.
    """
    words = words[:MOST_WORDS]
    with transaction.atomic():
        found = dict(rows.order_by("pk").select_for_update(of=("self",)).values_list("pk", "state"))
        if found:
            OutgoingMail.objects.filter(pk__in=found).update(state=became, **columns)
            Move.objects.bulk_create(
                Move(mail_id=pk, was=was, became=became, at=at, by=by, words=words) for pk, was in found.items()
            )
    return list(found)


def step(
    rows: QuerySet[OutgoingMail],
    pk: int,
    was: OutgoingState,
    became: OutgoingState,
    by: str,
    at: datetime,
    words: str = "",
    **columns: Any,
) -> bool:
    """Move one mail from a state that is known; False, and nothing changed, where it is not in it any more."""
    words = words[:MOST_WORDS]
    with transaction.atomic():
        if rows.filter(pk=pk, state=was).update(state=became, **columns) != 1:
            return False
        Move.objects.create(mail_id=pk, was=was, became=became, at=at, by=by, words=words)
    return True


def remark(mail: OutgoingMail, by: str, at: datetime, words: str) -> None:
    """A line in the record of a mail that stays where it is."""
    Move.objects.create(mail=mail, was=mail.state, became=mail.state, at=at, by=by, words=words[:MOST_WORDS])


def by_hand(pk: int, verb: str, person: str, now: datetime, words: str = "") -> bool:
    """Approve, hold, cancel or resend; False where the mail is in no state for it, or is about to be composed again.

    A mail that some have got already is not cancelled, but done: the others do not get it.
    """
    became, within = BY_HAND[verb]
    rows = OutgoingMail.objects.filter(pk=pk, state__in=within)
    if verb == "approve":  # what is about to be composed again is not what was looked at
        rows = rows.filter(stale=False)
    words = words.replace("\0", "")
    freed = {"not_before": None, "data_at": None, "lease_until": None, "tries": 0, "knocks": 0}
    columns = {"reason": words[:MOST_WORDS], "by_hand": True, **freed}
    if verb == "cancel" and move(rows.exclude(sent_at=None), S.SENT, person, now, words or "cancelled", **columns):
        return True
    return bool(move(rows, became, person, now, words, **columns))


def stopped() -> SendingStop | None:
    """The stop that is in force."""
    return SendingStop.objects.filter(ended_at__isnull=True).first()


def stop_sending(person: str, now: datetime, reason: str = "") -> bool:
    """No mail begins to leave from now on, whoever is at it; False where that is so already."""
    with transaction.atomic():
        if stopped():
            return False
        SendingStop.objects.create(at=now, by=person, reason=reason.replace("\0", "")[:MOST_WORDS])
    return True


def go_on_sending(person: str, now: datetime) -> bool:
    """Let mail go again; False where nothing stopped it."""
    return bool(SendingStop.objects.filter(ended_at__isnull=True).update(ended_at=now, ended_by=person))
