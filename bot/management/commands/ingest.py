"""`ingest PATH…`: read results, and print one line per input.

Each is new, a duplicate, or refused with reason and place.
"""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser
from collections import Counter
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.config import bot_identity, compose_config, tree_paths
from bot.management import counting
from bot.notifications.report import compose_due
from bot.results import recognise
from bot.results.curves import extend_curves
from bot.results.intake import IntakeAnswer, take_in
from bot.results.recognise import READS, read_paths, read_stream
from tracker.domain.text import counted

_STDIN = "standard input"
_MAILS = 25  # composed by this command; a first import may have thousands
_ON_CURVES = 50  # results whose curves are drawn by this command; the worker draws the rest


class Command(BaseCommand):
    help = (
        f"Read results: {READS}. JSON is one result, an array, JSON Lines or KCIDB v5. From files, directories, or -"
        " for JSON on standard input. docs/results.md describes each format."
    )
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH")

    def handle(self, *, paths: list[str], **options: Any) -> None:
        counts: Counter[str] = Counter()
        gc.freeze()  # exempt what is loaded by now from garbage collection: saves a tenth of the time
        inputs = chain.from_iterable(
            read_stream(sys.stdin.buffer, _STDIN) if is_stdin else read_paths([Path(path) for path in group])
            for is_stdin, group in groupby(paths, lambda path: path == "-")
        )
        with counting("reading results", "results") as progress:
            for answer in take_in(inputs, tree_paths(), timezone.now()):
                counts[self._print(answer, options["verbosity"])] += 1
                progress(counts.total())
        extend_curves(timezone.now(), most=_ON_CURVES)
        approve_first = settings.PERFWORK_APPROVE_FIRST
        composed = compose_due(
            bot_identity(), timezone.now(), approve_first=approve_first, limit=_MAILS, config=compose_config()
        )
        summary = ", ".join(f"{counts[word]} {word}" for word in ("new", "duplicate", "refused") if counts[word])
        rest = ", the worker composes the rest" if composed == _MAILS else ""
        self.stdout.write(f"{summary or 'nothing found'}; {counted(composed, 'mail')} composed{rest}")
        if not counts:
            raise CommandError("no results found in the input")
        if counts["refused"]:
            raise CommandError(f"{counts['refused']} of {counts.total()} refused")

    def _print(self, answer: IntakeAnswer, verbosity: int) -> str:
        if answer.rejection or answer.receipt is None or answer.result is None:
            rejection = answer.rejection
            assert rejection
            more = f" (and {len(rejection.faults) - 1} more faults)" if len(rejection.faults) > 1 else ""
            kept = None
            if answer.raw and answer.where.startswith(_STDIN):
                kept = recognise.keep(answer.raw, rejection, settings.PERFWORK_DROP, timezone.now())
            self.stderr.write(self.style.ERROR(f"refused: {rejection}{more}{f'; kept as {kept}' if kept else ''}"))
            return "refused"
        receipt = answer.receipt
        if verbosity:
            self.stdout.write(f"{receipt.taken}: {answer.where}: {answer.result.id} ({receipt.summary})")
        return receipt.taken.value
