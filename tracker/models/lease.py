"""A lease: who works on a row, until when. Work outlives its worker (DESIGN rule 7)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from django.db import connection, models
from django.db.models import F, Q


class Lease(models.Model):
    """A row that one worker at a time may hold, for a while; whoever dies leaves it to the next."""

    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class Held(Lease):
    """A row whose holder is known, so that one which died is not waited for."""

    holder = models.TextField(blank=True, help_text="the process that reads it, or read it last")

    class Meta:
        abstract = True


Row = TypeVar("Row", bound=Lease)


def claim(rows: models.QuerySet[Row], pk: int, now: datetime, length: timedelta) -> bool:
    """Take the lease on one of `rows` by one conditional UPDATE; False where somebody else holds it."""
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    return rows.filter(free, pk=pk).update(lease_until=now + length, attempts=F("attempts") + 1) == 1


def wait_for_turn(number: int) -> None:
    """Wait until no other transaction has this turn, and keep it to the end of ours. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def release(rows: models.QuerySet[Row], pk: int) -> None:
    """Give the lease back after work that came to its end."""
    rows.filter(pk=pk).update(lease_until=None, attempts=0)
