"""`documentation`: build docs/ as the site under /help/."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from bot.documentation import build
from bot.git.repository import Unreadable
from bot.management import data_error


class Command(BaseCommand):
    help = "Build the documentation that is shown under /help/, or with --to as files that need no server."
    requires_system_checks = []  # it uses no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", type=Path, metavar="DIR", help="a directory for files that are opened by a browser")

    def handle(self, *, to: Path | None, **options: Any) -> None:
        try:
            build(to or settings.DOCUMENTATION, "" if to else "/")
        except (Unreadable, OSError) as error:
            raise data_error(str(error)) from None
        self.stdout.write(f"built in {to or settings.DOCUMENTATION}")
