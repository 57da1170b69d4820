"""A lease: who works on a row, until when. Work outlives its worker (DESIGN rule 7)."""

from __future__ import annotations

from django.db import connection, models


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


def wait_for_turn(number: int) -> None:
    """Wait until no other transaction has this turn, and keep it to the end of ours. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])
