"""Short mutual exclusion: PostgreSQL's advisory locks, with all their numbers in one place."""

from __future__ import annotations

from enum import IntEnum

from django.db import connection


class Lock(IntEnum):
    """What is done by one transaction at a time; the value is the number of the advisory lock."""

    FILING = 5_150_115
    RATE_LIMITS = 5_150_116
    SIGN_IN_LINKS = 0x7369676E
    PASSWORDS = 0x70617373
    TREE_WALK = 0x74726565
    RESULT_INTAKE = 0x70657266
    CURVES = 0x63757276
    REMINDERS = 0x72656D69


def take(lock: Lock) -> None:
    """Wait for the lock and hold it until the transaction ends. SQLite has one writer at a time anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock.value])
