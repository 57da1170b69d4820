"""Restore a backup, without sending a mail twice: what was sent since the backup is not known to it.

So sending is stopped until an operator has looked; what was approved is in doubt, and counts as sent once a copy is
found in an archive (DESIGN rule 5); what was only composed, or not yet, is held. Results of the time between, handed
in again, are held by `Restoration` (bot/results/review_reasons.py).
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import Q, Value
from django.db.models.functions import Concat

from bot.operations.backup import DROPPED, sha256
from bot.operations.database_copy import NAMES, copy_in, count_rows
from bot.operations.errors import BackupError
from bot.operations.manifest import LARGEST, NAME, Manifest, read_manifest
from bot.results.review_reasons import FORGOTTEN
from bot.runtime.processes import has_died
from tracker.models import OutgoingMail, OutgoingState, Report, Restoration, SendingStop, ServiceLease
from tracker.services import mail_transitions
from tracker.services.reports.report_summary import refresh

S = OutgoingState
BY = "restore"
# In the words of all versions of the schema.
STOP = f"""INSERT INTO tracker_sendingstop ("at", "by", "reason", "ended_by")
 VALUES (CURRENT_TIMESTAMP, '{BY}', '{mail_transitions.UNFINISHED_RESTORE}', '')"""
_AT_ONCE = 500


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
            copy = _extracted(tar, manifest, folder)
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


def _extracted(tar: tarfile.TarFile, manifest: Manifest, folder: Path) -> Path:
    """Extract the copy of the database; its name in the archive decides nothing about where."""
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
    return copy


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
