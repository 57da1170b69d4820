"""`read PATH…`: mail in. Report mails by robots become reports, replies become messages and events."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.archive.errors import ArchiveError
from bot.archive.intake import Tally, read_source
from bot.archive.sources import Source, open_sources
from bot.config import identity
from bot.progress import counting


class Command(BaseCommand):
    help = (
        "Read mail: a public-inbox directory or epoch, an mbox (also .gz), a Maildir, a single mail, or - for"
        " standard input. Reading again goes on where it stopped. Without PATH: the archives of PERFWORK_ARCHIVES."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", metavar="PATH")

    def handle(self, *, paths: list[str], **options: Any) -> None:
        from django.conf import settings

        paths = paths or settings.PERFWORK_ARCHIVES
        if not paths:
            raise CommandError("nothing to read: name a PATH, or set PERFWORK_ARCHIVES")
        failed = sum([not self._read(path) for path in paths])
        if failed:
            raise CommandError(f"{failed} of {len(paths)} could not be read to the end")

    def _read(self, path: str) -> bool:
        """Read one path; what is wrong with it is one line, and the next one follows."""
        try:
            for source in open_sources(path):
                self._report(source, self._read_source(source))
        except (ArchiveError, OSError) as error:
            self.stderr.write(self.style.ERROR(str(error)))
            return False
        return True

    def _read_source(self, source: Source) -> Tally:
        with counting(f"reading {source.path.name}", "mails") as progress:
            return read_source(source, identity(), timezone.now(), progress)

    def _report(self, source: Source, tally: Tally) -> None:
        known = f", {tally.known} known before" if tally.known else ""
        bad = f", {tally.quarantined} quarantined" if tally.quarantined else ""
        self.stdout.write(
            f"{source.path}: {tally.seen} mails; new: {tally.reports} reports, {tally.replies} replies{known}{bad}"
        )
