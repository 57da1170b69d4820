"""`tool_output FILE…`: attach profiles, counters and other tool output to a report or to a kernel."""

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.http import Http404
from django.utils import timezone

from bot.management import data_error, no_input
from tracker.domain.events import InvalidInput
from tracker.models.results import CommitSide
from tracker.pages.lab import place_of
from tracker.services import catalog


class Command(BaseCommand):
    help = "Attach tool output: perf and oprofile profiles, vmstat, slabinfo -AD, /proc files, or any other text."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE")
        parser.add_argument("--report", default="", metavar="SHA", help="attach to a report, with --side")
        parser.add_argument("--side", default="", choices=["", *CommitSide.values])
        parser.add_argument("--kernel", default="", metavar="KERNEL", help="attach to a kernel: v6.12 or v6.12/VARIANT")
        parser.add_argument("--machine", default="", metavar="NAME", help="the machine it was recorded on")

    def handle(self, *, files: list[str], report: str, side: str, kernel: str, machine: str, **options: Any) -> None:
        try:
            place = place_of(report, side, kernel, machine)
        except (InvalidInput, Http404) as error:
            raise no_input(str(error)) from None
        rejected = 0
        for name in files:
            try:
                text = Path(name).read_bytes()[: 4 * catalog.MOST_CHARACTERS + 4].decode("utf-8", "replace")
                row = catalog.attach(Path(name).name, text, getpass.getuser(), timezone.now(), **place)
            except OSError as error:
                rejected += 1
                self.stderr.write(self.style.ERROR(f"refused: {name}: {error.strerror}"))
            except InvalidInput as invalid:
                rejected += 1
                self.stderr.write(self.style.ERROR(f"refused: {invalid}"))
            else:
                self.stdout.write(f"attached: {row.name} ({row.kind})")
        if rejected:
            raise data_error(f"{rejected} of {len(files)} refused")
