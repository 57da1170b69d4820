"""`triage [RELEASE] [--state …]`: print the triage table in the terminal."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import IO, Any, cast

from django.core.management.base import BaseCommand
from django.db.models import F
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from bot.management import no_input, require_folded
from tracker.domain.events import State
from tracker.models import Release, Report
from tracker.pages.home import lines
from tracker.pages.triage.filters import SECTIONS


class Command(BaseCommand):
    help = "Print the triage table of a release; by default, of the newest one that has reports."
    requires_system_checks = []  # it reads the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", nargs="?", metavar="RELEASE", help="such as v6.12")
        parser.add_argument("--state", action="append", default=[], choices=[state.value for state in State])
        parser.add_argument("--missing-in-stable", action="store_true", help="only fixes missing in a stable series")

    def handle(self, *, release: str | None, state: list[str], missing_in_stable: bool, **options: Any) -> None:
        require_folded()
        version = self._release(release).version
        reports = Report.objects.select_related("culprit").order_by(
            "metric", F("reported_at").desc(nulls_last=True), "pk"
        )
        if state:
            reports = reports.filter(state__in=state)
        if missing_in_stable:
            reports = reports.filter(lacks_fix=True)
        width = os.get_terminal_size().columns if sys.stdout.isatty() else 200  # a pipe has none
        console = Console(file=cast(IO[str], self.stdout), width=width, highlight=False)
        for section in SECTIONS.values():
            _print(console, f"{version}: {section.heading.lower()}", reports.filter(**{section.column: version}))

    def _release(self, version: str | None) -> Release:
        if version:
            if release := Release.objects.filter(version=version).first():
                return release
            raise no_input(f"{version}: unknown release; the front page lists known ones, and `track` adds tagged ones")
        for line in lines():
            if line.regressions or line.improvements:
                return line.release
        if Report.objects.exists():
            raise no_input(
                "no report belongs to a release yet: follow a mainline tree (PERFWORK_TREES), and `track` it"
            )
        raise no_input("there are no reports yet; add some with `ingest` or `read`")


def _print(console: Console, title: str, reports: Iterable[Report]) -> None:
    """Print reports with the columns of the 0-Day report."""
    rows = list(reports)
    grid = RichTable(title=f"{title} ({len(rows)})", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("metric", "report", "scenario", "machine", "base", "status"):
        grid.add_column(name, no_wrap=name in ("report", "machine", "base"), overflow="fold")
    for row in rows:
        cells = (row.metric, str(row), row.scenario, row.machine, row.base, row.status)
        grid.add_row(*(Text(cell) for cell in cells))
    console.print(grid if rows else f"{title}: no reports")
    console.print()
