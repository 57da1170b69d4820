"""`track`: fetch and walk the git trees for landings, fixes and reverts."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.config import bot_identity, configured_trees, tree_paths
from bot.git.repository import Unreadable
from bot.management import config_error, counting, no_input, unavailable
from bot.upstream.tracking import Patience, follow, store_trees
from tracker.domain.text import counted
from tracker.models import Tree


class Command(BaseCommand):
    help = "Fetch and walk the trees of PERFWORK_TREES, to find where culprits and fixes landed and what was reverted."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="TREE", help="only these trees")
        parser.add_argument("--no-fetch", action="store_true", help="walk the clones without fetching")
        parser.add_argument("--again", action="store_true", help="start over from the oldest tracked commit")

    def handle(self, *, names: list[str], no_fetch: bool, again: bool, **options: Any) -> None:
        choices = ", ".join(settings.PERFWORK_TREES) or "not set"
        if unknown := [name for name in names if name not in settings.PERFWORK_TREES]:
            raise no_input(f"{', '.join(unknown)}: not in PERFWORK_TREES ({choices})")
        trees = store_trees(configured_trees(names))
        if not trees:
            raise config_error(
                "no tree to track: set PERFWORK_TREES to name=path pairs, for example linus=/srv/linux.git"
            )
        patience = Patience(
            None if no_fetch else settings.PERFWORK_FETCH_PATIENCE, timedelta(seconds=settings.PERFWORK_LEASE)
        )
        failed = 0
        for tree in trees:
            if again:
                Tree.objects.filter(pk=tree.pk).update(cursor="")
            try:
                with counting(f"walking {tree.name}", "commits") as progress:
                    tally, failure = follow(tree, bot_identity(), timezone.now(), patience, tree_paths(), progress)
            except (Unreadable, OSError) as error:
                failed += 1
                self.stderr.write(self.style.ERROR(str(error)))
                continue
            if failure:
                failed += 1
                self.stderr.write(self.style.ERROR(failure))
            news = f"{counted(tally.landings, 'landing')}, {counted(tally.events, 'event')}"
            self.stdout.write(f"{tree.name}: {'nothing new' if tally.unchanged else news}")
        if failed:
            raise unavailable(f"{failed} of {len(trees)} trees could not be followed to the end")
