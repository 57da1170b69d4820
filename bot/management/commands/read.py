"""`read PATH…`: read mail. Robots' report mails become reports; replies become messages and events.

Sources are read one after the other, or with `--jobs` in forked processes that leases keep apart. Afterwards the
archives are searched again for mail about reports that another archive has brought in. Exit codes are those of
sysexits.h, so that a mail server retries after a temporary failure.
"""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections
from django.utils import timezone

from bot.archives.batch import ReadTally, file_accepted
from bot.archives.known_reports import missing_parents
from bot.archives.public_inbox import refresh
from bot.archives.reader import has_names_to_search, read_source
from bot.archives.sources import Source, open_sources, thread_source
from bot.config import bot_identity
from bot.git.repository import Busy, Unreadable
from bot.mail.patches import find_links
from bot.management import counting, usage_error
from tracker.domain.text import counted
from tracker.models import Archive, Decision, Message, OfferedReport
from tracker.services import person_reports


class Command(BaseCommand):
    help = (
        "Read mail: a public-inbox directory or epoch, an mbox (also .gz or .xz), a Maildir, a single mail,"
        " imaps://host/folder, nntps://host/group, or - for standard input. The next run continues where this stops;"
        " unchanged files are skipped. Without PATH: the archives of PERFWORK_ARCHIVES. Exit codes are those of"
        " sysexits.h: 75 is a temporary failure, after which a mail server retries."
    )
    # A mail server runs this for every mail; the checks load all pages and take half a second. `check` runs them.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", metavar="PATH")
        parser.add_argument(
            "--thread", action="append", default=[], metavar="MESSAGE-ID", help="read this thread from PERFWORK_LORE"
        )
        parser.add_argument(
            "--threads",
            metavar="FILE",
            help="a file with one link or Message-ID per line: make these mails reports by people; their"
            " threads are read from the PATHs, else from PERFWORK_LORE",
        )
        parser.add_argument("--missing", action="store_true", help="also read missing parents of tracked threads")
        parser.add_argument("--again", action="store_true", help="read from the start; known mail is kept")
        parser.add_argument("--fetch", action="store_true", help="git fetch mirrors before reading them")
        parser.add_argument("--jobs", type=int, default=1, metavar="N", help="read N epochs or lists in parallel")

    def handle(self, *, paths: list[str], thread: list[str], **options: Any) -> None:
        self.again: bool = options["again"]
        if options["jobs"] < 1:
            raise usage_error(f"--jobs: expected 1 or more, found {options['jobs']}")
        self.codes: list[int] = []
        listed = self._try(partial(named_threads, options["threads"]), os.EX_NOINPUT) if options["threads"] else []
        missing = missing_parents(timezone.now()) if options["missing"] else ()
        threads = [*thread, *(listed or () if not paths else ()), *missing]
        if not paths and not threads and not options["missing"] and not options["threads"]:
            paths = settings.PERFWORK_ARCHIVES
            if not paths:
                raise usage_error("nothing to read: name a PATH, or set PERFWORK_ARCHIVES")
        sources: list[Source] = []
        for path in paths:
            if options["fetch"] and "://" not in path and path != "-":
                self._try(partial(refresh, Path(path)))
            sources += self._try(partial(open_sources, path), os.EX_NOINPUT) or []
        candidates = [self._try(partial(thread_source, settings.PERFWORK_LORE, message_id)) for message_id in threads]
        sources += filter(None, candidates)
        exclusive = [candidate for candidate in sources if candidate.exclusive] if options["jobs"] > 1 else []
        for source in sources:
            if source not in exclusive:
                self._try(partial(self._read, source))
        self._in_parallel(exclusive, options["jobs"])
        if listed:
            self.stdout.write(make_reports(listed))
        if len(sources) > 1 or listed:
            self._search_again(sources)
        if self.codes:
            total = len(sources) + self.codes.count(os.EX_NOINPUT)
            code = os.EX_TEMPFAIL if os.EX_TEMPFAIL in self.codes else self.codes[0]
            raise CommandError(f"{len(self.codes)} of {total} could not be read to the end", returncode=code)

    def _try(self, work: Any, code: int = os.EX_DATAERR) -> Any:
        """Run `work`; print an error as one line and return None."""
        try:
            return work()
        except (Busy, OperationalError) as error:
            self.codes.append(os.EX_TEMPFAIL)
            self.stderr.write(self.style.ERROR(str(error)))
        except BrokenExecutor:
            self.codes.append(os.EX_TEMPFAIL)
            self.stderr.write(self.style.ERROR("a process that read an archive was killed; the next run resumes there"))
        except (Unreadable, OSError) as error:
            self.codes.append(code)
            self.stderr.write(self.style.ERROR(str(error)))
        return None

    def _read(self, source: Source) -> None:
        with counting(f"reading {source.name}", "mails") as progress:
            tally = read_source(source, bot_identity(), timezone.now(), progress, again=self.again)
        self.stdout.write(summary(source, tally))

    def _search_again(self, sources: list[Source]) -> None:
        """Search each archive for what was filed from the ones after it, until nothing more is found."""
        self.again = False
        has_more = True
        while has_more:
            has_more = False
            for source in sources:
                archive = Archive.objects.filter(path=source.name).first()
                if archive and has_names_to_search(source, archive):
                    tally = self._try(partial(read_source, source, bot_identity(), timezone.now()))
                    if tally and tally.kept:
                        has_more = True
                        self.stdout.write(summary(source, tally))

    def _in_parallel(self, sources: list[Source], jobs: int) -> None:
        """Read sources with news in processes, `jobs` at a time; leases keep them apart. A quiet one costs no process.

        The processes are forks, which have all code loaded. No connection to the database may be shared with them.
        """
        busy = [source for source in sources if self.again or self._try(partial(self._has_news, source))]
        connections.close_all()
        with ProcessPoolExecutor(max(1, min(jobs, len(busy))), get_context("fork")) as pool:
            futures = [pool.submit(_read_alone, source, again=self.again) for source in busy]
            for source, future in zip(busy, futures, strict=True):
                if (tally := self._try(future.result)) is not None:
                    self.stdout.write(summary(source, tally))

    def _has_news(self, source: Source) -> bool:
        """Whether a source must be read; a quiet one is recorded as read."""
        archive = Archive.objects.filter(path=source.name).first()
        if archive is None or not source.is_done(archive.cursor, source.goal()) or has_names_to_search(source, archive):
            return True
        self._read(source)  # which finds nothing to do
        return False


def _read_alone(source: Source, *, again: bool) -> ReadTally:
    """Read a source in a process of its own."""
    return read_source(source, bot_identity(), timezone.now(), again=again)


def named_threads(path: str) -> list[str]:
    """Return the Message-IDs in a list, by link or as they are, a line each; - is standard input."""
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    text = raw.decode("utf-8", "replace")
    names: list[str] = []
    for line in text.splitlines():
        linked = [link.message_id for link in find_links(line) if link.message_id]
        bare = _BARE_ID.fullmatch(line.strip())
        names += linked or ([bare[1]] if bare else [])
    if not names:
        raise Unreadable(f"{path}: expected a link to a mail, or a Message-ID, in a line; found none")
    return list(dict.fromkeys(names))


_BARE_ID = re.compile(r"<?([^\s<>@]{1,250}@[^\s<>@]{1,250})>?")


def make_reports(names: Sequence[str]) -> str:
    """Make the offered mails with these Message-IDs reports; return how many are reports now."""
    now = timezone.now()
    for offer in OfferedReport.objects.filter(message_id__in=names, decision=Decision.OPEN):
        person_reports.decide(offer, Decision.ACCEPTED, "read --threads", now)
    file_accepted(bot_identity(), now)
    reports = set(Message.objects.filter(message_id__in=names).values_list("message_id", flat=True))
    others = [name for name in names if name not in reports]
    text = f"{counted(len(reports), 'thread')} of {len(names)} followed"
    return text + (f"; no report of a slowdown was found in {', '.join(others[:5])}" if others else "")


def summary(source: Source, tally: ReadTally) -> str:
    """Return a one-line summary of what was read."""
    parts = [
        f"{source.name}: {counted(tally.seen, 'mail')}; new: {counted(tally.reports, 'report')}",
        f"{tally.repeated} of them about a culprit reported before" if tally.repeated else "",
        "1 reply" if tally.replies == 1 else f"{tally.replies} replies",
        f"{counted(tally.offers, 'mail')} offered as a person's report" if tally.offers else "",
        f"{tally.known} already known" if tally.known else "",
        f"{tally.pending} pending until their report is known" if tally.pending else "",
        f"{tally.quarantined} quarantined" if tally.quarantined else "",
    ]
    return ", ".join(part for part in parts if part)
