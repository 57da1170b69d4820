"""`examples check`: whether each written example (fixtures/replies) is well-formed."""

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from bot.management import data_error, no_input
from bot.replies.examples import EFFECTS, FOLDER, load


class Command(BaseCommand):
    help = "Check the written examples that the classifier of replies learns from, and count them by effect."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["check"])
        parser.add_argument(
            "folder", nargs="?", type=Path, default=FOLDER, help="a folder of .jsonl files (default: %(default)s)"
        )

    def handle(self, *, folder: Path, **options: Any) -> None:
        try:
            counts = Counter(example.effect for example in load(folder))
        except (OSError, ValueError) as error:
            raise data_error(str(error)) from None
        if not counts:
            raise no_input(f"{folder}: no .jsonl files; fixtures/replies/README.md says what they hold")
        for effect in EFFECTS:
            self.stdout.write(f"{effect:16}{counts[effect]:6}")
        self.stdout.write(f"{'total':16}{counts.total():6}")
