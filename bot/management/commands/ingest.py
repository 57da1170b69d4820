"""`ingest PATH…`: read results, and print one line per input.

Each is new, a duplicate, or refused with reason and place. `--parent FILE… --culprit FILE…` reads what benchmarks wrote
on two kernels, `--kernel VERSION FILE…` what they wrote on one.
"""

import gc
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.config import bot_identity, compose_config, tree_paths
from bot.management import counting, data_error, usage_error
from bot.notifications.report import compose_due
from bot.results import intake, recognise
from bot.results.intake import HandedIn, IntakeAnswer, more_faults, take_in
from bot.results.recognise import READS, Input, read_paths, read_stream
from bot.results.storage import extend_curves
from bot.results.values import RejectedInput
from tracker.domain.text import counted

_STDIN = "standard input"
_MAILS = 25  # composed by this command; a first import may have thousands
_ON_CURVES = 50  # results whose curves are drawn by this command; the worker draws the rest


class Command(BaseCommand):
    help = (
        f"Read results: {READS}. JSON is one result, an array, JSON Lines or KCIDB v5. From files, directories, or -"
        " for JSON on standard input. With --parent and --culprit, or --kernel: files of a benchmark"
        f" ({intake.TOOLS}). docs/results.md describes each format."
    )
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", metavar="PATH")
        files = parser.add_argument_group("files of a benchmark")
        files.add_argument(
            "--parent", nargs="+", metavar="PATH", default=[], help="the benchmark's files for the culprit's parent"
        )
        files.add_argument("--culprit", nargs="+", metavar="PATH", default=[], help="its files for the culprit")
        files.add_argument("--commit", default="", metavar="SHA", help="the culprit; its parent is --base")
        files.add_argument("--base", default="", metavar="SHA", help="the parent; default: from a followed tree")
        files.add_argument("--title", default="", help="the culprit's title, if no followed tree has it")
        files.add_argument("--author", default="", metavar="NAME <ADDRESS>", help="the culprit's author, likewise")
        files.add_argument("--kernel", default="", metavar="VERSION", help="PATHs were measured on this one kernel")
        files.add_argument("--suite", default="", help="instead of the tool's name")
        files.add_argument("--machine", default="", help="where it ran, if the files don't say")
        files.add_argument("--cpus", type=int, default=None, metavar="N")
        files.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="of the test; repeatable")
        files.add_argument("--bisect-log", default="", metavar="FILE", help="the output of `git bisect log`")
        files.add_argument("--tree", default="", help="the tree of the commits: linus, net-next")
        files.add_argument("--branch", default="")
        files.add_argument("--producer", default="", metavar="NAME", help="who measured; by default: files")

    def handle(self, *, paths: list[str], **options: Any) -> None:
        counts: Counter[str] = Counter()
        gc.freeze()  # exempt what is loaded by now from garbage collection: saves a tenth of the time
        handed = self._handed_in(paths, options)
        inputs: Iterable[Input] = handed.inputs if handed else _inputs(paths)
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
        if handed and handed.note:
            self.stdout.write(handed.note)
        if not counts:
            raise data_error("no results found in the input")
        if counts["refused"]:
            raise data_error(f"{counts['refused']} of {counts.total()} refused")

    def _handed_in(self, paths: list[str], options: dict[str, Any]) -> HandedIn | None:
        """Return the files of a benchmark that are named by --parent and --culprit or --kernel; None without these."""
        sides = options["parent"], options["culprit"]
        if not any(sides) and not options["kernel"]:
            if not paths:
                raise usage_error("expected a PATH, or --parent and --culprit; see ingest --help")
            return None
        if options["kernel"] and (any(sides) or not paths):
            raise usage_error("--kernel is for the files of one kernel: ingest --kernel v6.12 FILE…")
        if any(sides) and (not all(sides) or paths):
            raise usage_error("expected --parent FILE… --culprit FILE…, the same test on two kernels")
        now = timezone.now()
        try:
            log = options["bisect_log"]
            texts = {**options, "bisect_log": intake.read_files([Path(log)])[0].text if log else ""}
            about = intake.about_of(texts, options["param"])
            if options["kernel"]:
                files = intake.read_files([Path(path) for path in paths])
                return intake.of_kernel(options["kernel"], about, files, now)
            parent, culprit = (intake.read_files([Path(path) for path in side]) for side in sides)
            return intake.of_culprit(about, parent, culprit, tree_paths(), now)
        except RejectedInput as rejection:
            return HandedIn((Input(rejection.where, None, rejection),))

    def _print(self, answer: IntakeAnswer, verbosity: int) -> str:
        if answer.rejection or answer.receipt is None or answer.result is None:
            rejection = answer.rejection
            assert rejection
            kept = None
            if answer.raw and answer.where.startswith(_STDIN):
                kept = recognise.keep(answer.raw, rejection, settings.PERFWORK_DROP, timezone.now())
            self.stderr.write(self.style.ERROR(f"refused: {rejection}{f'; kept as {kept}' if kept else ''}"))
            for fault in more_faults(rejection):
                self.stderr.write(self.style.ERROR(f"  and {fault}"))
            return "refused"
        receipt = answer.receipt
        if verbosity:
            self.stdout.write(f"{receipt.taken}: {answer.where}: {answer.result.id} ({receipt.summary})")
        return receipt.taken.value


def _inputs(paths: list[str]) -> Iterable[Input]:
    return chain.from_iterable(
        read_stream(sys.stdin.buffer, _STDIN) if is_stdin else read_paths([Path(path) for path in group])
        for is_stdin, group in groupby(paths, lambda path: path == "-")
    )
