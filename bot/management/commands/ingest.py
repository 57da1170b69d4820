"""`ingest PATH…`: bisect results in, one line an input: new, duplicate, or refused with the reason and where."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.config import identity
from bot.english import counted
from bot.ingest.errors import Refused
from bot.ingest.formats import Input, read_path, read_stream
from bot.ingest.store import take
from bot.outbox.composing import compose_due
from bot.progress import counting


class Command(BaseCommand):
    help = "Take bisect results (JSON, an array, JSON Lines, a directory of such files, or - for standard input)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH")

    def handle(self, *, paths: list[str], **options: Any) -> None:
        counts: Counter[str] = Counter()
        with counting("taking results", "results") as progress:
            for each in self._inputs(paths):
                counts[self._take(each, options["verbosity"])] += 1
                progress(counts.total())
        composed = compose_due(identity(), timezone.now(), approve_first=settings.PERFWORK_APPROVE_FIRST)
        told = ", ".join(f"{counts[word]} {word}" for word in ("new", "duplicate", "refused") if counts[word])
        self.stdout.write(f"{told or 'nothing found'}; {counted(composed, 'mail')} composed")
        if not counts:
            raise CommandError("there is no result in what was handed in")
        if counts["refused"]:
            raise CommandError(f"{counts['refused']} of {counts.total()} refused")

    def _inputs(self, paths: list[str]) -> Iterator[Input]:
        for path in paths:
            yield from read_stream(sys.stdin.buffer, "standard input") if path == "-" else read_path(Path(path))

    def _take(self, each: Input, verbosity: int) -> str:
        try:
            if each.result is None:
                raise each.refusal or Refused(each.where, "nothing to take")
            receipt = take(each.result, timezone.now())
        except Refused as refusal:
            why = refusal if refusal.where else Refused(each.where, refusal.why)
            self.stderr.write(self.style.ERROR(f"refused: {why}"))
            return "refused"
        if verbosity:
            report = f" {receipt.report.culprit.sha10}" if receipt.report else ""
            self.stdout.write(f"{receipt.taken}: {each.where}: {each.result.id}{report}")
        return receipt.taken.value
