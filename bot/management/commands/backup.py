"""`backup FILE`: write a consistent backup, while everything goes on working."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.operations import BackupError, write_backup
from tracker.models import Report


class Command(BaseCommand):
    help = "Write a backup of the database and of the drop directory to a new file. Perfwork may keep running."
    requires_system_checks = []  # it uses the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a new file, such as perfwork-2026-11-21.tar")

    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            write_backup(file.resolve(), settings.PERFWORK_DROP, timezone.now())
        except BackupError as fault:
            raise CommandError(str(fault), returncode=os.EX_CANTCREAT) from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}", returncode=os.EX_CANTCREAT) from None
        self.stdout.write(f"{file}: {file.stat().st_size >> 20} MiB, {Report.objects.count():,} reports")
