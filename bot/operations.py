"""Data maintenance: prune what nothing depends on, erase a person, back up and restore the database.

What reports depend on (their mail, results and events) is never pruned. Erasing empties what somebody wrote and closes
their account; facts and counts stay, since they are public elsewhere: git's commits, and the mails that we sent. Their
address stays in one place, as one that gets no mail: forgetting it would mean writing to it again.

A backup is one tar file: a manifest, a consistent copy of the database, and what waits in the drop directory. SQLite's
online backup copies one snapshot (sqlite.org/backup.html), pg_dump one transaction. One of SQLite may be restored into
PostgreSQL, which is how an installation moves; not the other way. Not in it: mirrors of archives and
git trees, which are cloned again; the broker's queue, which holds no state (DESIGN rule 7); and secrets.

After a restore no mail may leave twice, and the backup does not know what was sent since. So sending is stopped
until an operator has looked; what was approved is in doubt, and counts as sent once a copy is found in an archive
(DESIGN rule 5); what was only composed is held. Results from that interval that are handed in again are held by the
`Restoration` (bot/results/grading.py).
"""

import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from bot.archives.files import head_of
from bot.leases import holder_has_died
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.replies.which_report import person_keys
from bot.results.grading import FORGOTTEN
from tracker.domain.events import EventKind, ReportedBy
from tracker.models import (
    Commit,
    Correspondent,
    Decision,
    DeliveryFailure,
    Event,
    FaultMail,
    LabJob,
    Mailing,
    MailTransition,
    Maintainer,
    Message,
    OfferedReport,
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
from tracker.services.accounts import ERASED, end_sessions
from tracker.services.database import Lock
from tracker.services.event_log import fold
from tracker.services.report_summary import refresh

# --- Pruning: rows go in slices, so that others are not kept waiting ---

_AT_ONCE = 500  # rows of one transaction
_LINKS = timedelta(days=30)  # their counts limit how often somebody may ask; the longest limit is a day


@dataclass(frozen=True, slots=True)
class Retention:
    """How long to keep what nothing depends on."""

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
    pruned = [Pruned(name, rows.count() if dry_run else _delete(rows)) for name, rows in _outdated(now, keep)]
    folders = (("imported files", "done", keep.done), ("rejected files", "refused", keep.rejected))
    for name, folder, age in (*folders, ("dismissed files", "dismissed", keep.rejected)):
        # Files and directories that were moved there before; a reason goes with its file
        place, before = drop / folder, (now - age).timestamp()
        entries = sorted(place.iterdir()) if place.is_dir() and not place.is_symlink() else []
        old = [path for path in entries if _changed_at(path) < before]
        if not dry_run:
            for path in old:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        pruned.append(Pruned(name, len(old)))
    return pruned


def _changed_at(path: Path) -> float:
    """Return when a file was last changed or moved, in seconds since 1970; one that is gone by now, never."""
    try:
        return max(path.lstat().st_mtime, path.lstat().st_ctime)
    except FileNotFoundError:
        return float("inf")


def _outdated(now: datetime, keep: Retention) -> Iterator[tuple[str, QuerySet[Model]]]:
    waits = PendingReference.objects.filter(source=OuterRef("pk"))
    filed = Message.objects.filter(source=OuterRef("pk"))
    yield (
        "offers of people's reports",
        OfferedReport.objects.filter(
            source__message=None, source__received_at__lt=now - keep.pending, decision=Decision.OPEN
        ),
    )
    unoffered = RawMessage.objects.filter(offered=None)
    unfiled: QuerySet[Model] = unoffered.filter(~Exists(filed), error="", erased_at=None)
    yield "pending mails", unfiled.filter(Exists(waits), received_at__lt=now - keep.pending)
    yield "unrelated mails", unfiled.filter(~Exists(waits), received_at__lt=now - keep.unrelated)
    yield "sign-in links", SignIn.objects.filter(asked_at__lt=now - _LINKS)
    yield "sessions", Session.objects.filter(expire_date__lt=now)
    yield "password attempts", PasswordAttempt.objects.filter(at__lt=now - timedelta(days=1))
    yield "mails about problems", FaultMail.objects.filter(at__lt=now - timedelta(days=90))
    done = WebhookDelivery.objects.exclude(state=DeliveryState.WAITING)
    yield "deliveries of webhooks", done.filter(created_at__lt=now - timedelta(days=30))


def _delete(rows: QuerySet[Model]) -> int:
    number = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:_AT_ONCE]):
        with transaction.atomic():
            locks.take(Lock.FILING)  # whatever is filed or quarantined meanwhile is needed again, …
            number += rows.filter(pk__in=keys).delete()[1].get(rows.model._meta.label, 0)  # … and left out here
    return number


# --- Erasing ---

NOBODY = "erased@erased.invalid"
_SAID = (EventKind.ASKED, EventKind.DISPUTED, EventKind.EXPECTED)
SOMEBODY = "somebody"  # for the name of a person who reported a regression
_EMPTY = zlib.compress(b"")
# Where an account's name says who did something.
_NAMED: Sequence[tuple[type[Model], str]] = (
    (Event, "actor"),
    (Suggestion, "decided_by"),
    (OfferedReport, "decided_by"),
    (LabJob, "allowed_by"),
    (OutgoingMail, "edited_by"),
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
    Event.objects.filter(message_id__in=ids, kind__in=_SAID).update(remark="")  # a question, or who holds a view
    OfferedReport.objects.filter(decided_by__iexact=address).update(decided_by=SOMEBODY)
    opened = Event.objects.filter(message_id__in=ids, kind=EventKind.REPORTED).exclude(remark="")
    opened.update(remark=SOMEBODY)  # a person's report: their name is in its sentence
    of_theirs = Report.objects.filter(pk__in=reports, reported_by=ReportedBy.PERSON, facts__mail__in=ids)
    of_theirs.update(reporters=[], facts={}, title="")
    Suggestion.objects.filter(message_id__in=ids).update(quote="", why="")
    SecondOpinion.objects.filter(message_id__in=ids).delete()
    PendingReference.objects.filter(source__in=sources).delete()
    accounts, assigned = _close_accounts(address)
    reports |= assigned | _forget_names(address, names)
    Correspondent.objects.update_or_create(
        address=address, defaults={"mailing": Mailing.OPTED_OUT, "note": ERASED, "since": now}
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
    """Close accounts with this address; what they did is attributed to a number from now on. Return how many, and which
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
        end_sessions(user.pk)
        user.username, user.email, user.first_name, user.last_name = new, "", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save()
    return len(users), assigned


def _forget_names(address: str, names: Collection[str]) -> set[int]:
    """Forget the address, and the names that came with it, where they only identify somebody. Return which reports
    had one.
    """
    SignIn.objects.filter(address__iexact=address).delete()
    Maintainer.objects.filter(address__iexact=address).delete()
    FaultMail.objects.filter(address__iexact=address).delete()
    OfferedReport.objects.filter(author_email__iexact=address).delete()
    for offer in OfferedReport.objects.filter(recipients__icontains=address):
        offer.recipients = [person for person in offer.recipients if str(person).lower() not in names]
        offer.save(update_fields=["recipients"])
    RateCalendar.objects.filter(key=address).delete()
    DeliveryFailure.objects.filter(address__iexact=address).delete()
    # Whom a robot's mail was sent to counts as the author until git says who it is.
    guessed = Commit.objects.filter(author_from_report=True, author_email__iexact=address)
    guessed.update(author_name="", author_email="", author_from_report=False)
    touched = set()
    known = Q(recipients__icontains=address) | Q(authors__icontains=address)
    for report in Report.objects.filter(known).select_related("culprit").only("recipients", "authors", "culprit"):
        recipients = [person for person in report.recipients if str(person).lower() not in names]
        authors = report.authors
        if report.culprit.author_email != address:  # else git says it
            authors = [person for person in authors if str(person).lower() not in names]
        if (recipients, authors) != (report.recipients, report.authors):
            Report.objects.filter(pk=report.pk).update(recipients=recipients, authors=authors)
            touched.add(report.pk)
    refresh(touched)
    return touched


# --- Backup and restore ---

MANIFEST = "manifest.json"  # the first file of a backup: what it is a backup of
_FORMAT = "perfwork-backup/1"
_DATABASE = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
_DROPPED = "drop/"  # the folder of the drop directory's files
_ADDRESS = ("host", "port", "dbname", "user", "sslmode", "sslrootcert", "sslcert", "sslkey", "passfile", "service")
_NEW_SCHEMA = "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
_MOVED = "moved"  # the schema that becomes `public`
_COPY = "copy"  # the alias of an SQLite database that is moved
_SQLITE: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}, "CONN_MAX_AGE": 0}
_BY = "restore"
# In the words of all versions of the schema. At no moment may a restored database send.
_STOP = f"""INSERT INTO tracker_sendingstop ("at", "by", "reason", "ended_by")
 VALUES (CURRENT_TIMESTAMP, '{_BY}', '{mail_transitions.UNFINISHED_RESTORE}', '')"""


class BackupError(Exception):
    """A backup can't be made, read or restored; one line says what is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself. `migrations`: those applied in it, as `app.name`."""

    made_at: datetime
    engine: str
    migrations: Sequence[str]


def write_backup(target: Path, drop: Path, now: datetime) -> None:
    """Write a backup to a new file, readable by its owner only; it appears complete or not at all.

    Raises BackupError, and OSError from the disk. Others may keep working meanwhile: what they store in a transaction
    is in it as a whole, or not at all.
    """
    if target.exists():
        raise BackupError(f"{target} exists already: name a new file")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as name:
        folder = Path(name)
        for path in sorted(drop.rglob("*")) if drop.is_dir() else ():
            # First: what is ingested meanwhile is in both, and not in none. What is done is in the database.
            if path.is_file() and not path.is_symlink() and path.relative_to(drop).parts[0] != "done":
                dropped = folder / _DROPPED / path.relative_to(drop)
                dropped.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):
                    shutil.copy2(path, dropped)
        copy = folder / _DATABASE[connection.vendor]
        if connection.vendor == "sqlite":
            connection.ensure_connection()
            with closing(sqlite3.connect(copy)) as to:  # all pages in one step: in several, each write begins it anew
                connection.connection.backup(to)
                _check_sqlite(to)
        else:
            _run_on_database("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={copy}")
        applied = sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())
        values = {"format": _FORMAT, "made_at": now.isoformat(), "engine": connection.vendor, "migrations": applied}
        (folder / MANIFEST).write_text(json.dumps(values, indent=1) + "\n")
        unfinished = folder / "backup.tar"
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            with tarfile.open(fileobj=out, mode="w:") as tar:
                for path in (folder / MANIFEST, copy, *sorted((folder / _DROPPED).rglob("*"))):
                    if path.is_file() and not path.is_symlink():
                        tar.add(path, str(path.relative_to(folder)))
            out.flush()
            os.fsync(out.fileno())
        os.link(unfinished, target)  # fails if the name has been taken meanwhile


def restore_backup(source: Path, drop: Path, now: datetime, *, replace: bool) -> Manifest:
    """Replace the database by that of a backup, and put its dropped files back. Raises BackupError, and OSError.

    `replace`: also if there are reports or mails in the database now.
    """
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=source.parent) as name:
        try:
            with tarfile.open(source, mode="r:") as tar:
                first = tar.next()
                content = tar.extractfile(first) if first and first.name == MANIFEST and first.size < 1 << 20 else None
                if content is None:
                    raise BackupError(f"{source} is not a backup: it does not begin with {MANIFEST}")
                manifest = read_manifest(content.read())
                _refuse_unfit(manifest, now, replace=replace)
                files = [entry for entry in tar.getmembers() if entry.isfile() and entry.name.startswith(_DROPPED)]
                for entry in files:
                    if not (drop / entry.name.removeprefix(_DROPPED)).resolve().is_relative_to(drop.resolve()):
                        raise BackupError(f"the backup has a file that leads elsewhere: {entry.name!r}")
                copy = Path(name) / _DATABASE[manifest.engine]
                _extract(tar, tar.getmember(copy.name), copy)
                if manifest.engine == connection.vendor:
                    _replace_database(copy)
                    call_command("migrate", verbosity=0)
                else:
                    _move_to_postgresql(copy)
                _settle(manifest.made_at, now)
                for entry in files:
                    if not (target := drop / entry.name.removeprefix(_DROPPED)).exists():
                        _extract(tar, entry, target)
        except (tarfile.TarError, KeyError) as error:
            raise BackupError(f"{source} is not a backup, or damaged: {error}") from None
    return manifest


def read_manifest(raw: bytes) -> Manifest:
    """Read a manifest. Raises BackupError if it is not one, or has another format."""
    try:
        values = json.loads(raw)
        if values["format"] != _FORMAT:
            raise BackupError(f"{MANIFEST}: expected the format {_FORMAT}, found {values['format']!r}")
        made_at = datetime.fromisoformat(values["made_at"])
        manifest = Manifest(made_at, str(values["engine"]), [str(name) for name in values["migrations"]])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"{MANIFEST} is not that of a backup: {type(error).__name__}: {error}") from None
    if manifest.engine not in _DATABASE or made_at.tzinfo is None:
        raise BackupError(f"{MANIFEST}: unknown database {manifest.engine!r}, or a time without its zone")
    return manifest


def _refuse_unfit(manifest: Manifest, now: datetime, *, replace: bool) -> None:
    """Refuse what can't be restored here, before anything is changed."""
    if manifest.engine != connection.vendor and manifest.engine != "sqlite":
        raise BackupError(
            f"the backup is of {manifest.engine}, the database here is {connection.vendor}: set DATABASE_URL"
        )
    here = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if manifest.engine != connection.vendor and (missing := sorted(here - set(manifest.migrations))):
        raise BackupError(
            f"the backup is of an older version of Perfwork, without {missing[0]}: to move it to {connection.vendor},"
            " restore it into SQLite first (`migrate` is part of that), and back up again"
        )
    if newer := sorted(set(manifest.migrations) - here):
        raise BackupError(f"the backup is of a newer version of Perfwork: it has {newer[0]}; install that version")
    tables = connection.introspection.table_names()
    if ServiceLease._meta.db_table in tables:
        lease = ServiceLease.objects.filter(name="scheduler", lease_until__gt=now).first()
        if lease and not holder_has_died(lease):
            raise BackupError(
                f"a scheduler is running ({lease.holder}): stop Perfwork first (systemctl stop perfwork); "
                "the lease of one that was killed on another machine ends within a minute"
            )
    if Report._meta.db_table in tables and not replace and (Report.objects.exists() or OutgoingMail.objects.exists()):
        raise BackupError("the database holds reports already: back it up, then restore with --replace")


def _extract(tar: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    """Write one file of a backup; its name in the archive does not decide where."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if (content := tar.extractfile(entry)) is not None:
        with target.open("xb") as file:
            shutil.copyfileobj(content, file)
        os.utime(target, (entry.mtime, entry.mtime))


def _replace_database(copy: Path) -> None:
    """Replace the database by a copy in which sending is stopped; after an error it is as it was."""
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(copy)) as source:
            _check_sqlite(source)
            with source:
                source.execute(_STOP)
            connection.ensure_connection()
            source.backup(connection.connection)
        connection.close()
        return
    connection.close()
    # `pg_restore --clean` fails at the indexes of partitions, so the schema goes as a whole.
    empty, script = copy.with_name("empty.sql"), copy.with_name("restore.sql")
    empty.write_text(f"{_NEW_SCHEMA}\n")
    _run("pg_restore", "--no-owner", "--no-privileges", f"--file={script}", str(copy))
    with script.open("a") as file:
        file.write(f"\n{_STOP.replace('tracker_', 'public.tracker_', 1)};\n")
    once = ("--single-transaction", "--set=ON_ERROR_STOP=1", "--quiet", "--no-psqlrc", "--output=/dev/null")
    _run_on_database("psql", *once, f"--file={empty}", f"--file={script}")


def _move_to_postgresql(copy: Path) -> None:
    """Replace the database by all rows of an SQLite database of this version, with sending stopped.

    They come into a schema of their own, which takes the place of the old one at the end; after an error, that is as it
    was.
    """
    with closing(sqlite3.connect(copy)) as source:
        _check_sqlite(source)
    connections.databases[_COPY] = connections.databases["default"] | _SQLITE | {"NAME": str(copy)}
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                f"DROP SCHEMA IF EXISTS {_MOVED} CASCADE; CREATE SCHEMA {_MOVED}; SET search_path TO {_MOVED}"
            )
        call_command("migrate", verbosity=0)
        with transaction.atomic(), connection.cursor() as cursor:
            _copy_rows()
            cursor.execute(_STOP)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"DROP SCHEMA public CASCADE; ALTER SCHEMA {_MOVED} RENAME TO public")
    except BaseException:
        with connection.cursor() as cursor:
            cursor.execute(f"SET search_path TO DEFAULT; DROP SCHEMA IF EXISTS {_MOVED} CASCADE")
        raise
    finally:
        connections[_COPY].close()
        del connections.databases[_COPY]
        connection.close()  # the next one looks for tables where they are now


def _copy_rows() -> None:
    """Copy the rows of all models, their numbers included. Raises BackupError that says which can't be stored."""
    models = [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]
    with connection.cursor() as cursor:
        names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
        cursor.execute(f"TRUNCATE {names} CASCADE")  # what the migrations stored is in the copy, too
        for model in models:
            rows = model._base_manager.using(_COPY).order_by("pk").iterator(_AT_ONCE)
            while some := list(islice(rows, _AT_ONCE)):
                for row in some:
                    for field in model._meta.concrete_fields:
                        value = getattr(row, field.attname)
                        if value != (cleaned := _storable(value)):
                            setattr(row, field.attname, cleaned)
                try:
                    model._base_manager.using("default").bulk_create(some)
                except (DatabaseError, UnicodeError) as error:
                    where = f"{model._meta.label}, rows {some[0].pk} to {some[-1].pk}"
                    raise BackupError(f"{where}: {' '.join(str(error).split())[:300]}; nothing was changed") from None
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


def _storable(value: Any) -> Any:
    """Return a text, or the JSON that holds it, without NULs and halves of characters: PostgreSQL stores none."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(part) for part in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(part) for name, part in value.items()}
    return value


def _check_sqlite(copy: sqlite3.Connection) -> None:
    try:
        [(answer,)] = copy.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        raise BackupError(f"the copy of the database can't be used: {error}") from None
    if answer != "ok":
        raise BackupError(f"the database is damaged: {answer}; see sqlite.org/recovery.html")


def _run_on_database(program: str, *arguments: str) -> None:
    given = connection.get_connection_params()
    # Quoted as in a connection string (PostgreSQL 33.1.1.1).
    quoted = {name: str(given[name]).replace("\\", "\\\\").replace("'", "\\'") for name in _ADDRESS if given.get(name)}
    address = " ".join(f"{name}='{value}'" for name, value in quoted.items())
    _run(program, f"--dbname={address}", *arguments, password=str(given.get("password") or ""))


def _run(program: str, *arguments: str, password: str = "") -> None:
    """Run a program of PostgreSQL; the password is passed in the environment, where other users can't read it."""
    path = shutil.which(program)
    if path is None:
        raise BackupError(f"{program} is missing: apt install postgresql-client, of the server's version or newer")
    environment = {**os.environ, "PGPASSWORD": password}
    done = subprocess.run([path, *arguments], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BackupError(f"{program}: {' '.join(done.stderr.split())[:500]}")


@transaction.atomic
def _settle(backup_at: datetime, now: datetime) -> None:
    """Send nothing that may have been sent after the backup was made."""
    made = f"{backup_at:%Y-%m-%d %H:%M} UTC"
    Restoration.objects.create(backup_at=backup_at, restored_at=now)
    reason = f"restored from a backup of {made}: mail that was sent since is not known here"
    SendingStop.objects.filter(by=_BY, ended_at=None).update(at=now, reason=reason)  # the stop that came with the copy
    may_have_left = OutgoingMail.objects.filter(state__in=(OutgoingState.APPROVED, OutgoingState.SENDING))
    doubt = f"approved before the backup of {made}; it counts as sent if a copy is found in an archive"
    columns = {"reason": doubt, "handed_over_at": backup_at, "lease_until": None}
    mail_transitions.transition(may_have_left, OutgoingState.IN_DOUBT, _BY, now, doubt, **columns)
    held = f"composed before the backup of {made}; check in the archives that it was not sent since"
    of_a_rule = Q(state=OutgoingState.HELD) & (Q(decided_by_person=False) | Q(not_before__isnull=False))
    composed = OutgoingMail.objects.filter(Q(state=OutgoingState.COMPOSED) | of_a_rule)
    columns = {"reason": held, "decided_by_person": True, "not_before": None}
    mail_transitions.transition(composed, OutgoingState.HELD, _BY, now, held, **columns)
    # Mails that are not in the outbox: links to sign in, and the daily mail of suggestions, which the review queue has.
    SignIn.objects.filter(mailed_at=None).update(mailed_at=backup_at)
    Suggestion.objects.filter(mailed_at=None).update(mailed_at=backup_at)
    # A reason for which a report was held may have been cleared since, and its mail sent; no result clears this one.
    unmailed = Report.objects.filter(results__isnull=False).exclude(outgoing__purpose="report").distinct()
    keys = list(unmailed.exclude(held__endswith=FORGOTTEN).values_list("pk", flat=True))
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        reports = Report.objects.filter(pk__in=some)
        reports.exclude(held="").update(held=Concat("held", Value(f"\n{FORGOTTEN}")))
        reports.filter(held="").update(held=FORGOTTEN)
        refresh(some)
