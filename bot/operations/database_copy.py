"""A consistent copy of the database into one file, and back, while others use it: by the tools of each database.

SQLite's online backup copies one snapshot (sqlite.org/backup.html); pg_dump works in one transaction of the isolation
level REPEATABLE READ.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from bot.operations.errors import BackupError

NAMES = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
_LONGEST_ERROR = 500  # characters
_ADDRESS = ("host", "port", "dbname", "user", "sslmode", "sslrootcert", "sslcert", "sslkey", "passfile", "service")


def copy_out(target: Path, tables: Sequence[str]) -> dict[str, int]:
    """Write a copy of the database. Return how many rows of these tables it has. Raises BackupError."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        with closing(sqlite3.connect(target)) as copy:
            # All pages in one step: in several, it would begin anew whenever somebody writes in between.
            connection.connection.backup(copy)
            _check(copy)
            return {table: _number(copy.cursor(), table) for table in tables}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # it waits for pg_dump, and locks nothing
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        found = {table: _number(cursor, table) for table in tables}
        options = ("--format=custom", "--no-owner", "--no-privileges")
        _postgresql("pg_dump", *options, f"--snapshot={snapshot}", f"--file={target}")
    return found


def count_rows(tables: Sequence[str]) -> dict[str, int]:
    """Return how many rows these tables have now."""
    with connection.cursor() as cursor:
        return {table: _number(cursor, table) for table in tables}


def _number(cursor: Any, table: str) -> int:
    cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")
    return int(cursor.fetchone()[0])


def copy_in(source: Path, statement: str) -> None:
    """Replace the database by a copy, in which a statement was run, in one transaction. Raises BackupError, and leaves
    it as it was.
    """
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(source)) as copy:
            _check(copy)
            with copy:
                copy.execute(statement)
            connection.ensure_connection()
            copy.backup(connection.connection)
        connection.close()
    else:
        connection.close()
        # `pg_restore --clean` fails at the indexes of partitions, so the schema goes as a whole.
        empty, script = source.with_name("empty.sql"), source.with_name("restore.sql")
        empty.write_text("DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n")
        _run("pg_restore", "--no-owner", "--no-privileges", f"--file={script}", str(source))
        with script.open("a") as file:
            file.write(f"\n{statement.replace('tracker_', 'public.tracker_', 1)};\n")
        once = ("--single-transaction", "--set=ON_ERROR_STOP=1", "--quiet", "--no-psqlrc", "--output=/dev/null")
        _postgresql("psql", *once, f"--file={empty}", f"--file={script}")


def _check(copy: sqlite3.Connection) -> None:
    try:
        [(answer,)] = copy.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        raise BackupError(f"the copy of the database can't be used: {error}") from None
    if answer != "ok":
        raise BackupError(f"the database is damaged: {answer}; see sqlite.org/recovery.html")


def _postgresql(program: str, *arguments: str) -> None:
    """Run a program on the database."""
    given = connection.get_connection_params()
    address = " ".join(f"{name}={_quoted(given[name])}" for name in _ADDRESS if given.get(name))
    _run(program, f"--dbname={address}", *arguments, password=str(given.get("password") or ""))


def _run(program: str, *arguments: str, password: str = "") -> None:
    """Run a program of PostgreSQL; the password goes by the environment, where other users can't read it."""
    path = shutil.which(program)
    if path is None:
        raise BackupError(f"{program} is missing: apt install postgresql-client, of the server's version or newer")
    environment = {**os.environ, "PGPASSWORD": password}
    done = subprocess.run([path, *arguments], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BackupError(f"{program}: {' '.join(done.stderr.split())[:_LONGEST_ERROR]}")


def _quoted(value: object) -> str:
    """Return a value of a connection string (PostgreSQL 33.1.1.1)."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
