"""`track`: walk the git trees for landings, fixes and reverts."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.config import configured_trees, identity
from bot.english import counted
from bot.errors import Unreadable
from bot.progress import counting
from bot.upstream.tracking import track


class Command(BaseCommand):
    help = "Walk the trees of PERFWORK_TREES (name=path, …): where culprits and fixes landed, and what was reverted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="TREE", help="only these trees")

    def handle(self, *, names: list[str], **options: Any) -> None:
        trees = [tree for tree in configured_trees() if not names or tree.name in names]
        if names and not trees:
            known = ", ".join(settings.PERFWORK_TREES) or "which is not set"
            raise CommandError(f"{', '.join(names)}: not among the trees of PERFWORK_TREES ({known})")
        if not trees:
            raise CommandError(
                "no tree to track: set PERFWORK_TREES to name=path pairs, for example linus=/srv/linux.git"
            )
        failed = 0
        with counting("walking", "trees") as progress:
            for number, tree in enumerate(trees, start=1):
                try:
                    tally = track(tree, identity(), timezone.now())
                except Unreadable as error:
                    failed += 1
                    self.stderr.write(self.style.ERROR(str(error)))
                    continue
                progress(number)
                news = f"{counted(tally.landings, 'landing')}, {counted(tally.events, 'event')}"
                self.stdout.write(f"{tree.name}: {'nothing new' if tally.unchanged else news}")
        if failed:
            raise CommandError(f"{failed} of {len(trees)} trees could not be walked")
