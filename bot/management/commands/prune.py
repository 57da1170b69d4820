"""`prune`: remove what nobody needs any more."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.management import usage_error
from bot.operations import Retention, prune

AGES = {
    "pending": "mail that waits for a report that never came",
    "unrelated": "stored mail that concerns nothing",
    "done": "files of imported results",
    "rejected": "files of rejected results",
}
MOST = 36_500  # days: a century, which is never


class Command(BaseCommand):
    help = (
        "Remove what no report depends on: old raw mail that belongs to no report, imported files, links and sessions."
    )
    requires_system_checks = []  # it uses the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count")
        for name, what in AGES.items():
            days = getattr(Retention(), name).days
            parser.add_argument(f"--{name}", type=int, default=days, metavar="DAYS", help=f"{what}: {days} days")

    def handle(self, *, dry_run: bool, **options: Any) -> None:
        if invalid := next((name for name in AGES if not 0 <= options[name] <= MOST), ""):
            raise usage_error(f"--{invalid}: expected 0 to {MOST:,} days, found {options[invalid]}")
        keep = Retention(**{name: timedelta(days=options[name]) for name in AGES})
        for pruned in prune(settings.PERFWORK_DROP, timezone.now(), keep, dry_run=dry_run):
            self.stdout.write(f"{pruned.number:8,}  {pruned.what}")
