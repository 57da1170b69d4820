"""`restore FILE`: put a backup back; nothing is sent until an operator has looked."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError
from django.utils import timezone

from bot.management import data_error, no_input, unavailable
from bot.operations import BackupError, restore_backup
from tracker.models import Report

AFTER = f"""sending is stopped, since mail that was sent after the backup is not known here. Now:
  start Perfwork again
  {settings.PROGRAM} read                              read the archives: copies of our mail are found there
  {settings.PROGRAM} outbox list --state in_doubt      decide on what was not found, or do it at /outbox/
  {settings.PROGRAM} outbox list --state held
  {settings.PROGRAM} outbox go                         send again
For a week every new mail waits for a person. What was erased on request since the backup is back: erase it again."""


class Command(BaseCommand):
    help = (
        "Replace the database with the one in a backup, while Perfwork is stopped. Nothing is sent until `outbox go`."
    )
    requires_system_checks = []  # it uses the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="what `backup` wrote")
        parser.add_argument("--replace", action="store_true", help="even if the database holds reports already")

    def handle(self, *, file: Path, replace: bool, **options: Any) -> None:
        try:
            manifest = restore_backup(file.resolve(), settings.PERFWORK_DROP, timezone.now(), replace=replace)
        except BackupError as fault:
            raise data_error(str(fault)) from None
        except DatabaseError as error:
            raise unavailable(f"the database: {' '.join(str(error).split())}") from None
        except OSError as error:
            raise no_input(f"{file}: {error.strerror or error}") from None
        self.stdout.write(
            f"restored {Report.objects.count():,} reports of {manifest.made_at:%Y-%m-%d %H:%M} UTC; {AFTER}"
        )
