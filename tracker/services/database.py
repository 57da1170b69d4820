"""Work on the database itself: bulk statements, locks, interruptions, and its clock.

Bulk statements store thousands of rows without the cost of model instances, by one statement per call: `bulk_create`
takes 60 µs per wide row, which used to be most of the time of storing results; this takes 5 to 10. Rows are tuples of
database values: keys, numbers, strings, and JSON as text. All constraints still apply.

Locks are for short mutual exclusion: PostgreSQL's advisory locks, with all their numbers in one place. An
interruption is a failure for no fault of the data, after which to try again: the database is busy, gone, or ended an
idle transaction. `outage` says in words why the database can't be used, for pages and the log. All hosts share the
database's clock, by which leases run and what they are compared with.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connection, models
from django.utils import timezone

# --- Bulk statements ---

Item = TypeVar("Item", int, str)
Rows = Sequence[tuple[Any, ...]]


def in_parts(items: Iterable[Item], size: int = 500) -> Iterator[list[Item]]:
    """Return the items in lists of at most `size`; sorted, so that two workers lock rows in the same order."""
    every = sorted(items)
    return (every[start : start + size] for start in range(0, len(every), size))


def insert(model: type[models.Model], fields: Sequence[str], rows: Rows) -> None:
    """Insert rows; `fields` names what each tuple holds."""
    if not rows:
        return
    table = _table(model, fields)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(fields))})", rows)


def insert_new(rows: Sequence[models.Model]) -> None:
    """Insert instances of one class, less those that break a unique constraint: they are stored already."""
    if not rows:
        return
    fields = stored(type(rows[0]))
    table, places = _table(type(rows[0]), fields), ", ".join(["%s"] * len(fields))
    with connection.cursor() as cursor:
        statement = f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO NOTHING"
        cursor.executemany(statement, [values(row) for row in rows])


def stored(model: type[models.Model]) -> list[str]:
    """Return the names of the fields that a new row stores: all but the primary key and generated fields."""
    return [field.name for field in _stored(model)]


@cache
def _stored(model: type[models.Model]) -> tuple[models.Field[Any, Any], ...]:
    return tuple(field for field in model._meta.concrete_fields if not field.primary_key and not field.generated)


def values(row: models.Model) -> tuple[Any, ...]:
    """Return the database values of a new row, in the order of `stored`."""
    fields = _stored(type(row))
    return tuple([field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields])


def create(rows: Sequence[models.Model], *key: str) -> None:
    """Insert instances of one class and set their primary keys; `key` names the fields that are unique together."""
    if not rows:
        return
    model = type(rows[0])
    insert(model, stored(model), [values(row) for row in rows])
    filters = {f"{name}__in": {getattr(row, name) for row in rows} for name in key}
    pks = {tuple(names): pk for pk, *names in model._default_manager.filter(**filters).values_list("pk", *key)}
    for row in rows:
        row.pk = pks[tuple([getattr(row, name) for name in key])]


def update(rows: Sequence[models.Model], fields: Sequence[str], computed: str = "") -> None:
    """Update these fields of instances of one class. `bulk_update` takes 1.5 ms per row of 14 fields; this takes 0.05.

    `computed`: an SQL assignment for a column that the database computes: "revision = (SELECT …)".
    """
    if not rows:
        return
    model, quote = type(rows[0]), connection.ops.quote_name
    chosen = _fields(model, fields)
    changes = ", ".join([*(f"{quote(str(field.column))} = %s" for field in chosen), *([computed] if computed else [])])
    values = [
        [*(field.get_db_prep_save(getattr(row, field.attname), connection) for field in chosen), row.pk] for row in rows
    ]
    statement = f"UPDATE {quote(model._meta.db_table)} SET {changes} WHERE {quote(str(model._meta.pk.column))} = %s"
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)


def _table(model: type[models.Model], fields: Iterable[str]) -> str:
    """ "table" ("column", …), quoted. The names come from our models, never from input."""
    quote = connection.ops.quote_name
    return f"{quote(model._meta.db_table)} ({', '.join(quote(str(field.column)) for field in _fields(model, fields))})"


def _fields(model: type[models.Model], names: Iterable[str]) -> list[models.Field[Any, Any]]:
    fields = [model._meta.get_field(name) for name in names]
    return [field for field in fields if isinstance(field, models.Field)]


# --- Locks ---


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


# --- Interruptions ---

_IDLE = "25P03"  # SQLSTATE idle_in_transaction_session_timeout, which psycopg makes an InternalError


def is_interruption(error: BaseException | None) -> bool:
    """Return whether what failed may work if tried again. Other internal errors are of the program or its data."""
    if isinstance(error, InternalError):
        return getattr(error.__cause__, "sqlstate", None) == _IDLE
    return isinstance(error, OperationalError)


# --- A full disk, and other reasons why the database can't be used ---

_LACKS_MIGRATIONS = "the database lacks migrations: run `{program} migrate`"
FULL = "nothing can be stored: the disk is full or read-only"
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
# Parts of the messages of SQLite and PostgreSQL, in lower case, and what they mean.
_MEANINGS = (
    (("disk is full", "no space left", "disk full", "readonly database", "read-only transaction"), FULL),
    (("unable to open database file",), "the database file can't be opened: is it there, and has its disk space?"),
    (("disk i/o error",), "the disk of the database reports an error"),
    (("no such table", "no such column"), _LACKS_MIGRATIONS),
    (("does not exist",), "the database that DATABASE_URL names does not exist"),
    (("database is locked",), "the database is busy"),
)
_UNDEFINED = ("42P01", "42703")  # SQLSTATE undefined_table and undefined_column, which Django makes a ProgrammingError


def outage(error: BaseException | None) -> str:
    """Return why nothing can be stored or the database can't be used, or "" if the error is about something else."""
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return FULL
    if isinstance(error, ProgrammingError) and getattr(error.__cause__, "sqlstate", None) in _UNDEFINED:
        return _LACKS_MIGRATIONS.format(program=settings.PROGRAM)
    if not (is_interruption(error) or isinstance(error, InterfaceError)):
        return ""
    text = str(error).lower()
    meanings = (meaning for parts, meaning in _MEANINGS if any(part in text for part in parts))
    return next(meanings, "the database can't be reached").format(program=settings.PROGRAM)


def keep_journal() -> object:
    """Return a connection that keeps SQLite's journal in its place while it lives; None for other databases.

    The last connection that closes removes the journal, and without space for a new one not even reading is possible.
    """
    path = connection.settings_dict["NAME"]
    if connection.vendor != "sqlite" or not Path(path).is_file():
        return None
    kept = sqlite3.connect(path, check_same_thread=False)
    kept.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the journal
    return kept


# --- The clock ---


def database_now() -> datetime:
    """Return the time now, in UTC. SQLite has no server, so all its users are on this host."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now
