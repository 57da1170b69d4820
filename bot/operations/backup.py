"""Write a backup: one tar with a manifest, a consistent copy of the database, and the files of the drop directory.

The database holds everything that Perfwork knows, raw mail and results included. Not in the backup: mirrors of archives
and git trees, which are cloned again, the broker's queue, which holds no state (DESIGN rule 7), and secrets.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from bot.operations.database_copy import NAMES, copy_out
from bot.operations.errors import BackupError
from bot.operations.manifest import NAME, Manifest
from tracker.models import Event, Message, OutgoingMail, RawMessage, Report

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
                _add_text(tar, NAME, manifest.text(), now)
                tar.add(copy, copy.name)
                for path in dropped:
                    tar.add(path, str(path.relative_to(folder)), recursive=False)
            out.flush()
            os.fsync(out.fileno())
        os.link(unfinished, target)  # fails if the name has been taken meanwhile
    return manifest


def _private(path: Path) -> io.BufferedWriter:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _add_text(tar: tarfile.TarFile, name: str, text: str, now: datetime) -> None:
    raw = text.encode()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(raw), int(now.timestamp()), 0o600
    tar.addfile(entry, io.BytesIO(raw))


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
