"""`status`: what is wrong, what waits for a person, when each duty was last done; exit code 1 if anything is wrong.

`--try-again` makes archives and trees due at once that failed, as the buttons of `/operating/` do.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

import bot.celery  # noqa: F401  # which tells what is due
from tracker.domain.text import age, counted
from tracker.services.installation import standing, try_all


class Command(BaseCommand):
    help = "Print what is wrong, what waits for a person, and when each duty was last done; exit code 1 for a problem."
    requires_system_checks = []  # it must tell of a half configured installation

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--try-again", action="store_true", help="retry failed archives and trees at once")

    def handle(self, **options: Any) -> None:
        now = timezone.now()
        if options["try_again"]:
            self.stdout.write(f"failed archives and trees, read again at once: {try_all()}; what follows is older")
        installation = standing(now)
        problems = counted(len(installation.problems), "problem")
        self.stdout.write(f"{problems}{':' if installation.problems else ''}")
        for fault in installation.problems:
            since = f" since {fault.since:%Y-%m-%d %H:%M} UTC" if fault.since else ""
            self.stdout.write(f"  {fault.name}{since}: {fault.error}")
        self.stdout.write("Waiting for a person:")
        for waiting in installation.waiting:
            self.stdout.write(f"  {waiting}: {waiting.url}")
        if not installation.waiting:
            self.stdout.write("  nothing")
        self.stdout.write("Duties, and when each was last done:")
        for duty in sorted(installation.duties, key=lambda duty: duty.task):
            failed = f", failed: {duty.error}" if duty.error else ""
            self.stdout.write(f"  {duty.task:24} {f'{age(duty.at, now)} ago{failed}' if duty.at else 'never'}")
        if installation.problems:
            raise CommandError(problems)
