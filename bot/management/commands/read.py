"""`read PATH…`: mail in. Report mails by robots become reports, replies become messages and events."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.archive.intake import read_source
from bot.archive.sources import Source, open_sources, thread_source
from bot.archive.tally import Tally
from bot.config import identity
from bot.english import counted
from bot.errors import Unreadable
from bot.progress import counting


class Command(BaseCommand):
    help = (
        "Read mail: a public-inbox directory or epoch, an mbox (also .gz), a Maildir, a single mail, or - for standard"
        " input. Reading again goes on where it stopped; a file that did not change is not read. Without PATH: the"
        " archives of PERFWORK_ARCHIVES."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", metavar="PATH")
        parser.add_argument(
            "--thread",
            action="append",
            default=[],
            metavar="MESSAGE-ID",
            help="a thread from the server of PERFWORK_LORE",
        )

        parser.add_argument("--again", action="store_true", help="from the beginning; what is known stays as it is")

    def handle(self, *, paths: list[str], thread: list[str], **options: Any) -> None:
        if not paths and not thread:
            paths = settings.PERFWORK_ARCHIVES
        opened: list[Callable[[], list[Source]]] = [partial(open_sources, path) for path in paths]
        opened += [partial(self._thread, message_id) for message_id in thread]
        if not opened:
            raise CommandError("nothing to read: name a PATH, or set PERFWORK_ARCHIVES")
        self.again = options["again"]
        failed = sum([not self._read(sources) for sources in opened])
        if failed:
            raise CommandError(f"{failed} of {len(opened)} could not be read to the end")

    def _thread(self, message_id: str) -> list[Source]:
        return [thread_source(settings.PERFWORK_LORE, message_id)]

    def _read(self, sources: Callable[[], list[Source]]) -> bool:
        """Read one input; what is wrong with it is one line, and the next one follows."""
        try:
            opened = sources()
        except (Unreadable, OSError) as error:
            self.stderr.write(self.style.ERROR(str(error)))
            return False
        failed = sum(not self._read_source(source) for source in opened)
        return not failed

    def _read_source(self, source: Source) -> bool:
        try:
            with counting(f"reading {source.name}", "mails") as progress:
                tally = read_source(source, identity(), timezone.now(), progress, again=self.again)
        except (Unreadable, OSError) as error:
            self.stderr.write(self.style.ERROR(str(error)))
            return False
        self._report(source, tally)
        return True

    def _report(self, source: Source, tally: Tally) -> None:
        replies = "1 reply" if tally.replies == 1 else f"{tally.replies} replies"
        parts = [
            f"{source.name}: {counted(tally.seen, 'mail')}; new: {counted(tally.reports, 'report')}",
            f"{tally.repeated} of them of a culprit reported before" if tally.repeated else "",
            replies,
            f"{tally.known} known before" if tally.known else "",
            f"{tally.orphans} kept until their report comes" if tally.orphans else "",
            f"{tally.quarantined} quarantined" if tally.quarantined else "",
        ]
        self.stdout.write(", ".join(part for part in parts if part))
