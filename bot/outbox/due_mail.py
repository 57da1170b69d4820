"""The queue of due mails: workers claim small batches, oldest first, within the rate limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from bot.compose.policy.rates import Rates, Slot, reserve_slot
from tracker.models import Message, OutgoingMail, OutgoingState, Purpose, RateCalendar
from tracker.models.mail import PEOPLE
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

UNLIMITED = Rates()
MOST_ROUNDS = 1000  # that only give mails their turn


def claim_due(now: datetime, length: timedelta, limit: int, by: str, rates: Rates = UNLIMITED) -> list[OutgoingMail]:
    """Claim up to `limit` due mails in a short transaction. Further mails wait until their report is sent.

    Rows that another worker has locked are skipped, so that workers do not wait for each other. Mails that only get a
    later turn by the rate limits keep no others from being claimed.
    """
    for _ in range(MOST_ROUNDS):
        with transaction.atomic():
            due = _due(ready().select_for_update(of=("self",), skip_locked=True), now, limit)
            allowed = _within_rates(due, rates, now) if rates and due else due
            if allowed or not due:
                return mail_transitions.claim(allowed, now, length, by) if allowed else []
    return []


def ready() -> QuerySet[OutgoingMail]:
    """Return the mails that are approved, up to date, and not waiting for their report."""
    report_mails = OutgoingMail.objects.filter(report=OuterRef("report"), purpose=Purpose.REPORT)
    ahead = Exists(report_mails.exclude(state=OutgoingState.SENT))
    first = Q(purpose=Purpose.REPORT) | Q(purpose__startswith=Purpose.ANSWER)
    approved = OutgoingMail.objects.filter(first | ~ahead, state=OutgoingState.APPROVED, stale=False)
    return approved.exclude(_overtaken())


def overtaken_reminders() -> QuerySet[OutgoingMail]:
    """Return the waiting reminders about whose reports somebody's mail came in since, whenever it was written."""
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
    """Return whether a worker is sending: it continues by itself, so no task need be enqueued."""
    return OutgoingMail.objects.filter(state=OutgoingState.SENDING).exists()


def next_due(now: datetime) -> datetime | None:
    """Return when the next mail becomes due, None if there is none."""
    return ready().filter(not_before__gt=now).order_by("not_before").values_list("not_before", flat=True).first()


def _due(rows: QuerySet[OutgoingMail], now: datetime, limit: int) -> list[int]:
    """Return the keys of due mails: first those that had a start time, then the others. Each query uses an index,
    however long the queue is.
    """
    waited = rows.filter(not_before__lte=now).order_by("not_before", "pk").values_list("pk", flat=True)
    fresh = rows.filter(not_before__isnull=True).order_by("pk").values_list("pk", flat=True)
    found = list(waited[:limit])
    return found + list(fresh[: limit - len(found)]) if len(found) < limit else found


def _within_rates(due: list[int], rates: Rates, now: datetime) -> list[int]:
    """Return the mails that the rate limits allow now. Each other mail is given its send time, once."""
    locks.take(Lock.RATE_LIMITS)
    rows = list(OutgoingMail.objects.filter(pk__in=due).only("pk", "recipients", "settled", "not_before", "turn_at"))
    left = {row.pk: [each for each in row.recipients if each not in row.settled] for row in rows}
    keys = {key for row in rows for key, _ in rates.keys(left[row.pk])}
    stored, taken = _calendars(keys)
    allowed = []
    for row in sorted(rows, key=lambda row: due.index(row.pk)):
        if row.turn_at and row.turn_at == row.not_before:  # its send time has come
            allowed.append(row.pk)
        elif send_at := reserve_slot(left[row.pk], rates, taken, now):
            OutgoingMail.objects.filter(pk=row.pk).update(not_before=send_at, turn_at=send_at)
        else:
            allowed.append(row.pk)
    _save(stored, taken)
    return allowed


def _calendars(keys: Iterable[str]) -> tuple[dict[str, list[list[str]]], dict[str, list[Slot]]]:
    """Return what the limits with these keys have given away: as it is stored, and as slots."""
    stored = dict(RateCalendar.objects.filter(key__in=keys).values_list("key", "taken"))
    at = datetime.fromisoformat
    return stored, {key: [(at(begin), at(end)) for begin, end in slots] for key, slots in stored.items()}


def _save(stored: Mapping[str, list[list[str]]], taken: Mapping[str, list[Slot]]) -> None:
    found = {key: [[begin.isoformat(), end.isoformat()] for begin, end in slots] for key, slots in taken.items()}
    changed = [RateCalendar(key=key, taken=slots) for key, slots in found.items() if slots != stored.get(key)]
    RateCalendar.objects.bulk_create(changed, update_conflicts=True, unique_fields=["key"], update_fields=["taken"])
