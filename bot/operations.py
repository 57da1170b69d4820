"""Restore a backup, without sending a mail twice: what was sent since the backup is not known to it.

So sending is stopped until an operator has looked; what was approved is in doubt, and counts as sent once a copy is
found in an archive (DESIGN rule 5); what was only composed, or not yet, is held. Results of the time between, handed
in again, are held by `Restoration` (bot/results/grading.py).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from bot.archives.files import head_of
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.processes import has_died
from bot.replies.which_report import person_keys
from bot.results.grading import FORGOTTEN
from tracker.domain.events import EventKind
from tracker.models import (
    Commit,
    Correspondent,
    DeliveryFailure,
    Event,
    FaultMail,
    Mailing,
    MailTransition,
    Maintainer,
    Message,
    OutgoingMail,
    OutgoingState,
    PasswordAttempt,
    PendingReference,
    RateCalendar,
    RawMessage,
    Report,
    Restoration,
    SecondOpinion,
    SendingStop,
    ServiceLease,
    Session,
    SignIn,
    Suggestion,
    TextRevision,
    ToolOutput,
    WebhookDelivery,
)
from tracker.models.accounts import DeliveryState
from tracker.services import database as locks
from tracker.services import mail_transitions
from tracker.services.database import Lock
from tracker.services.event_log import fold
from tracker.services.report_summary import refresh
from tracker.services.sessions import end_all

# --- Errors of backup and restore, each said in one line: what is wrong, and what to do ---


class BackupError(Exception):
    """A backup can't be made, read or restored."""


# --- Remove what nobody needs any more: raw mail that concerns nothing, files that were imported, old links and
# sessions ---
# What reports rest on is never removed: their mail, results and events. Rows go in slices, so that others are not kept
# waiting.

_AT_ONCE = 500  # rows of one transaction
_LINKS = timedelta(days=30)  # their counts limit how often somebody may ask; the longest limit is a day


@dataclass(frozen=True, slots=True)
class Retention:
    """How long to keep what nothing rests on."""

    pending: timedelta = timedelta(days=365)  # mail that waits for a report that never came
    unrelated: timedelta = timedelta(days=90)  # stored mail that concerns nothing, bounces included
    done: timedelta = timedelta(days=30)  # files of imported results, which the database holds
    rejected: timedelta = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be."""

    what: str
    number: int


def prune(drop: Path, now: datetime, keep: Retention = Retention(), *, dry_run: bool = False) -> list[Pruned]:
    """Remove what is older than `keep` says. Returns all kinds with their numbers; `dry_run` only counts."""
    remove_rows = _count if dry_run else _delete
    found = [Pruned(name, remove_rows(rows)) for name, rows in _outdated(now, keep)]
    for name, folder, age in (("imported files", "done", keep.done), ("rejected files", "refused", keep.rejected)):
        old = list(_old_entries(drop / folder, now - age))
        if not dry_run:
            for path in old:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        found.append(Pruned(name, len(old)))
    return found


def _outdated(now: datetime, keep: Retention) -> Iterator[tuple[str, QuerySet[Model]]]:
    waits = PendingReference.objects.filter(source=OuterRef("pk"))
    filed = Message.objects.filter(source=OuterRef("pk"))
    unfiled: QuerySet[Model] = RawMessage.objects.filter(~Exists(filed), error="", erased_at=None)
    yield "pending mails", unfiled.filter(Exists(waits), received_at__lt=now - keep.pending)
    yield "unrelated mails", unfiled.filter(~Exists(waits), received_at__lt=now - keep.unrelated)
    yield "sign-in links", SignIn.objects.filter(asked_at__lt=now - _LINKS)
    yield "sessions", Session.objects.filter(expire_date__lt=now)
    yield "password attempts", PasswordAttempt.objects.filter(at__lt=now - timedelta(days=1))
    yield "mails about problems", FaultMail.objects.filter(at__lt=now - timedelta(days=90))
    done = WebhookDelivery.objects.exclude(state=DeliveryState.WAITING)
    yield "deliveries of webhooks", done.filter(created_at__lt=now - timedelta(days=30))


def _count(rows: QuerySet[Model]) -> int:
    return rows.count()


def _delete(rows: QuerySet[Model]) -> int:
    number = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:_AT_ONCE]):
        with transaction.atomic():
            locks.take(Lock.FILING)  # whatever is filed or quarantined meanwhile is needed again, …
            number += rows.filter(pk__in=keys).delete()[1].get(rows.model._meta.label, 0)  # … and left out here
    return number


def _old_entries(folder: Path, before: datetime) -> Iterator[Path]:
    """Yield files and directories that were moved there before a time; a reason goes with its file."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if path.lstat().st_mtime < before.timestamp() and path.lstat().st_ctime < before.timestamp():
            yield path


# --- Erase a person's data on request: what they wrote and their account go, facts and counts stay ---
# What stays, since it is public elsewhere and is evidence: what git says of commits, and mails that we sent. Their
# address stays in one place, as one that gets no mail: to forget it would mean to write to it again.

NOBODY = "erased@erased.invalid"
NOTE = "erased on request"
_EMPTY = zlib.compress(b"")
# Where an account's name says who did something.
_NAMED: Sequence[tuple[type[Model], str]] = (
    (Event, "actor"),
    (Suggestion, "decided_by"),
    (MailTransition, "by"),
    (SendingStop, "by"),
    (SendingStop, "ended_by"),
    (TextRevision, "by"),
    (ToolOutput, "submitted_by"),
)


@dataclass(frozen=True, slots=True)
class Erased:
    """How many mails were emptied, and how many accounts closed."""

    mails: int
    accounts: int


@transaction.atomic
def erase(address: str, now: datetime) -> Erased:
    """Erase whoever has this address, in one transaction. What their mail did to reports stays."""
    address = address.lower()
    mails = Message.objects.filter(author_email__iexact=address)
    names = {address, *person_keys(Address(name, address) for name in set(mails.values_list("author_name", flat=True)))}
    ids = list(mails.values_list("message_id", flat=True))
    sources = [*mails.values_list("source", flat=True), *_unfiled(address)]
    reports = set(mails.values_list("report", flat=True))
    # The digest stays, by which the mail is known if an archive still has it.
    RawMessage.objects.filter(pk__in=sources).update(compressed=_EMPTY, error="", erased_at=now)
    mails.update(author_name="", author_email=NOBODY, own_text="", subject="", signature="")
    Event.objects.filter(message_id__in=ids).update(quote="")
    Suggestion.objects.filter(message_id__in=ids).update(quote="", why="")
    SecondOpinion.objects.filter(message_id__in=ids).delete()
    PendingReference.objects.filter(source__in=sources).delete()
    accounts, assigned = _close_accounts(address)
    reports |= assigned | _forget_names(address, names)
    Correspondent.objects.update_or_create(
        address=address, defaults={"mailing": Mailing.OPTED_OUT, "note": NOTE, "since": now}
    )
    fold(sorted(reports))
    return Erased(len(sources), accounts)


def _unfiled(address: str) -> Iterator[int]:
    """Yield the stored mails of theirs that no report has: quarantined, or waiting for one."""
    filed = Message.objects.filter(source=OuterRef("pk"))
    rows = RawMessage.objects.filter(~Exists(filed), erased_at=None)
    for row in rows.iterator(chunk_size=50):
        head = head_of(row.raw)
        if address.encode() in head.lower() and parse(head + b"\n\n").author.email == address:
            yield row.pk


def _close_accounts(address: str) -> tuple[int, set[int]]:
    """Close accounts with this address; what they did is that of a number from now on. Return how many, and which
    reports were ever assigned to them.
    """
    assigned: set[int] = set()
    users = list(get_user_model()._default_manager.filter(email__iexact=address))
    for user in users:
        name, new = user.get_username(), f"erased-{user.pk}"
        for model, column in _NAMED:
            model._default_manager.filter(**{column: name}).update(**{column: new})
        assignments = Event.objects.filter(kind=EventKind.ASSIGNED, remark=name)
        assigned |= set(assignments.values_list("report", flat=True))
        assignments.update(remark=new)
        PasswordAttempt.objects.filter(account=name.lower()).delete()
        for related in ("views", "subscriptions", "webhooks", "api_keys"):
            getattr(user, related).all().delete()
        end_all(user.pk)
        user.username, user.email, user.first_name, user.last_name = new, "", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save()
    return len(users), assigned


def _forget_names(address: str, names: Collection[str]) -> set[int]:
    """Forget the address, and the names that came with it, where they only say who somebody is. Return which reports
    had one.
    """
    SignIn.objects.filter(address__iexact=address).delete()
    Maintainer.objects.filter(address__iexact=address).delete()
    FaultMail.objects.filter(address__iexact=address).delete()
    RateCalendar.objects.filter(key=address).delete()
    DeliveryFailure.objects.filter(address__iexact=address).delete()
    # Whom a robot's mail was sent to counts as the author until git says who it is.
    guessed = Commit.objects.filter(author_from_report=True, author_email__iexact=address)
    guessed.update(author_name="", author_email="", author_from_report=False)
    touched = set()
    known = Q(recipients__icontains=address) | Q(authors__icontains=address)
    for report in Report.objects.filter(known).select_related("culprit").only("recipients", "authors", "culprit"):
        recipients = [each for each in report.recipients if str(each).lower() not in names]
        by_git = report.culprit.author_email == address
        authors = report.authors if by_git else [each for each in report.authors if str(each).lower() not in names]
        if (recipients, authors) != (report.recipients, report.authors):
            Report.objects.filter(pk=report.pk).update(recipients=recipients, authors=authors)
            touched.add(report.pk)
    refresh(touched)
    return touched


# --- A consistent copy of the database into one file, and back, while others use it: by the tools of each database
# ---
# SQLite's online backup copies one snapshot (sqlite.org/backup.html); pg_dump works in one transaction of the isolation
# level REPEATABLE READ.

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
            _database_copy_check(copy)
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
            _database_copy_check(copy)
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


def _database_copy_check(copy: sqlite3.Connection) -> None:
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


# --- What a backup says of itself: `manifest.json`, the first file in it ---

FORMAT = "perfwork-backup/1"
NAME = "manifest.json"
LARGEST = 1 << 20  # bytes
ENGINES = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Manifest:
    """`migrations`: those applied in it. `sha256` is of the member `database`. `rows`: numbers of rows, to compare."""

    made_at: datetime
    engine: str
    database: str
    sha256: str
    migrations: Sequence[str]
    rows: Mapping[str, int]

    def text(self) -> str:
        values = {"format": FORMAT, **asdict(self), "made_at": self.made_at.isoformat()}
        return json.dumps(values, indent=1, sort_keys=True) + "\n"


def read_manifest(raw: bytes) -> Manifest:
    """Read a manifest. Raises BackupError if it is none, or of another format."""
    try:
        values = json.loads(raw)
        if values["format"] != FORMAT:
            raise BackupError(f"{NAME}: expected the format {FORMAT}, found {values['format']!r}")
        found = Manifest(
            made_at=datetime.fromisoformat(values["made_at"]),
            engine=str(values["engine"]),
            database=str(values["database"]),
            sha256=str(values["sha256"]),
            migrations=[str(each) for each in values["migrations"]],
            rows={str(name): int(number) for name, number in values["rows"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"{NAME} is not that of a backup: {type(error).__name__}: {error}") from None
    if found.engine not in ENGINES or found.made_at.tzinfo is None:
        raise BackupError(f"{NAME}: unknown database {found.engine!r}, or a time without its zone")
    return found


# --- Write a backup: one tar with a manifest, a consistent copy of the database, and the files of the drop directory
# ---
# The database holds everything that Perfwork knows, raw mail and results included. Not in the backup: mirrors of
# archives and git trees, which are cloned again, the broker's queue, which holds no state (DESIGN rule 7), and
# secrets.

COUNTED = tuple(model._meta.db_table for model in (Report, Event, Message, RawMessage, OutgoingMail))
DROPPED = "drop"  # the folder of the drop directory's files


def write_backup(target: Path, drop: Path, now: datetime) -> Manifest:
    """Write a backup to a new file, readable by its owner only; it is there whole, or not at all.

    Raises BackupError, and OSError from the disk. Others may go on working meanwhile: what they store in a transaction
    is in it as a whole, or not at all.
    """
    if target.exists():
        raise BackupError(f"{target} exists already: name a new file")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as name:
        folder = Path(name)
        copy = folder / NAMES[connection.vendor]
        dropped = list(_copied(drop, folder / DROPPED))  # first: what is ingested meanwhile is in both, and not in none
        rows = copy_out(copy, COUNTED)
        manifest = Manifest(now, connection.vendor, copy.name, sha256(copy), migrations(), rows)
        unfinished = folder / "backup.tar"
        with _private(unfinished) as out:
            with tarfile.open(fileobj=out, mode="w:") as tar:
                text = manifest.text()
                raw = text.encode()
                entry = tarfile.TarInfo(NAME)
                entry.size, entry.mtime, entry.mode = len(raw), int(now.timestamp()), 0o600
                tar.addfile(entry, io.BytesIO(raw))
                tar.add(copy, copy.name)
                for path in dropped:
                    tar.add(path, str(path.relative_to(folder)), recursive=False)
            out.flush()
            os.fsync(out.fileno())
        os.link(unfinished, target)  # fails if the name has been taken meanwhile
    return manifest


def _private(path: Path) -> io.BufferedWriter:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _copied(drop: Path, target: Path) -> Iterator[Path]:
    """Copy the files of the drop directory; yield the copies. What is taken at that very moment is in the database."""
    for path in _files(drop):
        copy = target / path.relative_to(drop)
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(path, copy)
        except FileNotFoundError:
            continue
        yield copy


def _files(drop: Path) -> Iterator[Path]:
    """Yield what waits in the drop directory, and what was rejected: not what is done, which the database holds."""
    if not drop.is_dir():
        return
    for path in sorted(drop.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.relative_to(drop).parts[0] != "done":
            yield path


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def migrations() -> list[str]:
    """Return the migrations that are applied, as `app.name`."""
    return sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())


# --- Restore a backup, without sending a mail twice: what was sent since the backup is not known to it ---
# So sending is stopped until an operator has looked; what was approved is in doubt, and counts as sent once a copy is
# found in an archive (DESIGN rule 5); what was only composed, or not yet, is held. Results of the time between, handed
# in again, are held by `Restoration` (bot/results/grading.py).

S = OutgoingState
BY = "restore"
# In the words of all versions of the schema.
STOP = f"""INSERT INTO tracker_sendingstop ("at", "by", "reason", "ended_by")
 VALUES (CURRENT_TIMESTAMP, '{BY}', '{mail_transitions.UNFINISHED_RESTORE}', '')"""


def restore_backup(
    source: Path, drop: Path, now: datetime, *, replace: bool, say: Callable[[str], None] = lambda line: None
) -> Manifest:
    """Replace the database by that of a backup, and put its dropped files back. Raises BackupError, and OSError.

    `replace`: also if there are reports or mails in the database now.
    """
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=source.parent) as name:
        folder = Path(name)
        with _opened(source) as tar:
            manifest = _manifest(tar)
            _check(manifest, now, replace=replace)
            # Extract the copy of the database; its name in the archive decides nothing about where
            copy = folder / NAMES[manifest.engine]
            try:
                file = tar.extractfile(manifest.database)
                assert file
                with copy.open("wb") as target:
                    while chunk := file.read(1 << 20):
                        target.write(chunk)
            except (KeyError, AssertionError, tarfile.TarError) as error:
                raise BackupError(f"the backup has no database: {error}") from None
            if sha256(copy) != manifest.sha256:
                raise BackupError("the backup is damaged: its database does not match its checksum")
            say("replacing the database")
            copy_in(copy, STOP)  # at no moment may the restored database send
            call_command("migrate", verbosity=0)
            _settle(manifest, now)
            _put_back(tar, drop)
    if (found := count_rows(list(manifest.rows))) != manifest.rows:
        raise BackupError(f"the restored database has other rows than the backup says: {found}, not {manifest.rows}")
    return manifest


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, mode="r:")
    except tarfile.TarError as error:
        raise BackupError(f"{source} is not a backup: {error}") from None


def _manifest(tar: tarfile.TarFile) -> Manifest:
    try:
        entry = tar.next()
        if entry is None or entry.name != NAME or not entry.isfile() or entry.size > LARGEST:
            raise BackupError(f"not a backup: it does not begin with {NAME}")
        file = tar.extractfile(entry)
        assert file
        return read_manifest(file.read())
    except tarfile.TarError as error:
        raise BackupError(f"the backup can't be read: {error}") from None


def _check(manifest: Manifest, now: datetime, *, replace: bool) -> None:
    """Refuse what can't be restored here, before anything is changed."""
    if manifest.engine != connection.vendor:
        raise BackupError(
            f"the backup is of {manifest.engine}, the database here is {connection.vendor}: set DATABASE_URL"
        )
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if unknown := sorted(set(manifest.migrations) - known):
        raise BackupError(f"the backup is of a newer version of Perfwork: it has {unknown[0]}; install that version")
    tables = connection.introspection.table_names()
    if ServiceLease._meta.db_table in tables:
        lease = ServiceLease.objects.filter(name="scheduler", lease_until__gt=now).first()
        if lease and not has_died(lease.holder):
            raise BackupError(
                f"a scheduler is running ({lease.holder}): stop all of Perfwork first; the lease of one that was killed"
                " on another machine ends within a minute"
            )
    if Report._meta.db_table in tables and not replace and (Report.objects.exists() or OutgoingMail.objects.exists()):
        raise BackupError("the database holds reports already: back it up, then restore with --replace")


@transaction.atomic
def _settle(manifest: Manifest, now: datetime) -> None:
    """Let nothing leave that may have left after the backup was made."""
    made = f"{manifest.made_at:%Y-%m-%d %H:%M} UTC"
    Restoration.objects.create(backup_at=manifest.made_at, restored_at=now)
    reason = f"restored from a backup of {made}: mail that was sent since is not known here"
    SendingStop.objects.filter(by=BY, ended_at=None).update(at=now, reason=reason)  # the stop that came with the copy
    may_have_left = OutgoingMail.objects.filter(state__in=(S.APPROVED, S.SENDING))
    doubt = f"approved before the backup of {made}; it counts as sent if a copy is found in an archive"
    columns = {"reason": doubt, "handed_over_at": manifest.made_at, "lease_until": None}
    mail_transitions.transition(may_have_left, S.IN_DOUBT, BY, now, doubt, **columns)
    held = f"composed before the backup of {made}; check in the archives that it was not sent since"
    of_a_rule = Q(state=S.HELD) & (Q(decided_by_person=False) | Q(not_before__isnull=False))
    composed = OutgoingMail.objects.filter(Q(state=S.COMPOSED) | of_a_rule)
    columns = {"reason": held, "decided_by_person": True, "not_before": None}
    mail_transitions.transition(composed, S.HELD, BY, now, held, **columns)
    # A reason for which a report was held may have been cleared since, and its mail sent; no result clears this one.
    unmailed = Report.objects.filter(results__isnull=False).exclude(outgoing__purpose="report").distinct()
    keys = list(unmailed.exclude(held__endswith=FORGOTTEN).values_list("pk", flat=True))
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        reports = Report.objects.filter(pk__in=some)
        reports.exclude(held="").update(held=Concat("held", Value(f"\n{FORGOTTEN}")))
        reports.filter(held="").update(held=FORGOTTEN)
        refresh(some)


def _put_back(tar: tarfile.TarFile, drop: Path) -> None:
    """Put the files of the drop directory back that are not there. Raises BackupError for a name that leads outside."""
    try:
        entries = tar.getmembers()
    except (tarfile.TarError, OSError) as error:
        raise BackupError(f"the database is restored, but the rest of the backup is damaged: {error}") from None
    for entry in entries:
        if not entry.isfile() or not entry.name.startswith(f"{DROPPED}/"):
            continue
        target = (drop / entry.name.removeprefix(f"{DROPPED}/")).resolve()
        if not target.is_relative_to(drop.resolve()):
            raise BackupError(f"the backup has a file that leads elsewhere: {entry.name!r}")
        content = tar.extractfile(entry)
        if target.exists() or content is None:
            continue
        # Written by hand: tarfile can't extract under another name before Python 3.11.4, and Debian 12 has 3.11.2.
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                shutil.copyfileobj(content, file)
        except tarfile.TarError as error:
            raise BackupError(f"the backup is damaged at {entry.name!r}: {error}") from None
        os.utime(target, (entry.mtime, entry.mtime))
