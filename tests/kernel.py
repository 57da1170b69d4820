"""A test kernel: one repository with the branches of all trees, each tracked as a tree of its own."""

from __future__ import annotations

from datetime import timedelta

from bot.upstream.tracking import TrackTally, track
from tests.linux import Linux
from tests.world import World, message_id
from tracker.models import Report, Tree
from tracker.models.git import TreeRole

TITLE = "mm/vmscan: walk cold folios first"
ROBOT = "lkp@robots.example"
ROLES = {"linus": TreeRole.MAINLINE, "next": TreeRole.NEXT, "stable": TreeRole.STABLE}


def closes(report: Report) -> str:
    """Return the trailer that closes a report."""
    return f"Closes: https://lore.kernel.org/r/{message_id(report)}"


class Kernel:
    """One repository with the branches of all trees, each tracked as a tree of its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.git = Linux(world.directory / "kernel.git", world.now)
        self.git.commit("Linux 9.0")
        self.git.tag("v9.0")
        for branch in ("mm", "next"):
            self.git.point(branch, self.git.head("master"))

    def walk(self, *names: str) -> TrackTally:
        """Walk these trees, and return the tally of the last one."""
        self.world.now = max(self.world.now, self.git.now) + timedelta(hours=1)
        tally = TrackTally()
        for name in names:
            branch = {"linus": "", "stable": "linux-*"}.get(name, name)
            tree, _ = Tree.objects.update_or_create(
                name=name,
                defaults={
                    "role": ROLES.get(name, TreeRole.MAINTAINER),
                    "path": str(self.git.path),
                    "branches": branch,
                },
            )
            tally = track(tree, self.world.settings, self.world.now, [self.git.path])
        return tally

    def report(self, sha: str, title: str = TITLE, **changes: object) -> Report:
        return self.world.report(title, sha=sha, **changes)

    def merged(self, title: str = TITLE, body: str = "") -> Report:
        """Commit a culprit, tag it v9.1-rc1, and return the report about it."""
        sha = self.git.commit(title, body)
        self.git.tag("v9.1-rc1")
        report = self.report(sha, title)
        self.walk("linus")
        return report
