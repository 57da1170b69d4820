"""`replay`: process stored mail again with today's code; with `--all`, results and tool output too."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.archives.batch import replay_all, replay_quarantine
from bot.config import bot_identity
from bot.management import counting
from bot.results.storage import read_again
from tracker.domain.text import counted


class Command(BaseCommand):
    help = "Process quarantined mail again; with --all, all stored mail, results and tool output."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="process everything stored; decisions of people are kept",
        )

    def handle(self, *, all: bool, **options: Any) -> None:
        work = replay_all if all else replay_quarantine
        with counting("reading stored mail again", "mails") as progress:
            done = work(bot_identity(), timezone.now(), progress)
        quarantined = f"{done.tally.quarantined} in quarantine" if done.tally.quarantined else "none in quarantine"
        changed = counted(len(done.changed), "report") + " with a changed status"
        self.stdout.write(f"{counted(done.mails, 'mail')} read again: {quarantined}, {changed}")
        for sha in done.changed[:50]:
            self.stdout.write(f"  {sha[:10]}")
        if all:
            reread = read_again()
            summary = f"{counted(reread.results, 'result')} and {counted(reread.files, 'file')} of tool output"
            self.stdout.write(f"{summary} read again: {reread.changed} changed, {reread.rejected} now refused")
