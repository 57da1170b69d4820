"""`learn`: adapt the classifier of replies to what people decided here, if cross-validation says that it helps."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bot.config import bot_identity
from bot.lessons import lessons
from bot.replies.classifier.adapting import adapt, compare
from bot.replies.classifier.model import load, save

FEWEST = 20  # decisions; fewer say nothing about what helps


class Command(BaseCommand):
    help = (
        "Adapt the classifier of replies to the decisions in the review queue, and write it to FILE if that makes it"
        " read held-out mail better. Set PERFWORK_CLASSIFIER to FILE to use it, unset it to undo."
    )
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="where to write it: a .npz file")
        parser.add_argument("--export", type=Path, metavar="JSONL", help="write the decisions as examples, and exit")

    def handle(self, *, file: Path | None, export: Path | None, **options: Any) -> None:
        found = list(lessons(bot_identity()))
        try:
            if export:
                lines = (json.dumps(each.example(), ensure_ascii=False) + "\n" for each in found)
                export.write_text("".join(lines), encoding="utf-8")
                self.stdout.write(f"{export}: {len(found)} examples, with the words of people's mail: keep it private")
                return
            self._learn(file, [each.labelled() for each in found])
        except OSError as error:
            raise CommandError(str(error)) from None

    def _learn(self, file: Path | None, decided: list[Any]) -> None:
        if len(decided) < FEWEST:
            raise CommandError(f"{len(decided)} decisions on mail; {FEWEST} or more are needed to learn from")
        if file and file.suffix != ".npz":
            raise CommandError(f"{file}: expected a name that ends in .npz")
        model = load()
        result = compare(model, decided)
        before, after = (f"{hits} of {result.replies}" for hits in (result.right_before, result.right_after))
        self.stdout.write("Cross-validated, with a tenth of the reports held out at a time:")
        self.stdout.write(f"  the project's classifier  {before} right, log loss {result.loss_before:.3f}")
        self.stdout.write(f"  adapted                   {after} right, log loss {result.loss_after:.3f}")
        if not result.helps:
            self.stdout.write("Adapting does not help: nothing is written.")
        elif file:
            save(adapt(model, decided), file)
            self.stdout.write(
                f"Written to {file}. To use it: PERFWORK_CLASSIFIER={file.absolute()}, restart, and `replay --all` if"
                " older mail is to be read with it. To undo: unset it."
            )
        else:
            self.stdout.write("Adapting helps: name a FILE to write it to.")
