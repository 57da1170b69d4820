"""One walk over what is new in a tree: commits that may concern us, and the graph of where they landed.

It uses git, but not the database. A `Route` is a tree as it is now, with the checkpoint where the last walk ended:
its refs, and marks for what was followed then, kept as one line of JSON in `Tree.cursor`. An unreadable checkpoint
counts as empty, so the tree is walked from its beginning.

A walk goes from the followed branches and tags back to its border, the commits whose history need not be walked. With
a date these are the tags from well before it (clocks differ, so by 14 days); otherwise what was walked last time,
unless a new tag may be the first to hold older commits. Tags may come late, move or be deleted, and branches may be
rewound: `late_tags`, `lost_tags` and `left_behind` find the landings that this puts in doubt.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.history import Graph, read_log
from bot.git.repository import Refs, Tag, resolve, revisions
from bot.mail.settings import BotSettings
from bot.upstream.matching import Seen, Tracked, find_references
from tracker.domain import versions
from tracker.domain.events import TreeRole
from tracker.domain.versions import Version

# --- The checkpoint ---

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Marks:
    """The highest ids that a walk knew; rows with higher ones are looked for in older commits, too."""

    report: int = 0
    message: int = 0
    outgoing: int = 0
    event: int = 0
    related: int = 0


@dataclass(frozen=True, slots=True)
class WalkCheckpoint:
    """The followed branches and the tags, by name; empty before the first walk."""

    branches: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)

    @property
    def is_empty(self) -> bool:
        return not self.branches and not self.tags

    def dump(self) -> str:
        """Return one line of JSON."""
        data = {"form": _FORMAT, "branches": self.branches, "tags": self.tags, "marks": asdict(self.marks)}
        return json.dumps(data, separators=(",", ":"), sort_keys=True)


def load_checkpoint(cursor: str) -> WalkCheckpoint:
    """Parse what `dump` returned. Anything else gives an empty checkpoint, so that the tree is walked from its
    beginning.
    """
    try:
        data = json.loads(cursor)
        if data["form"] != _FORMAT:
            return WalkCheckpoint()
        return WalkCheckpoint(dict(data["branches"]), dict(data["tags"]), Marks(**data["marks"]))
    except (ValueError, KeyError, TypeError):
        return WalkCheckpoint()


# --- The walk ---

# A tag counts as older than a commit only by this margin: clocks differ.
_MARGIN = timedelta(days=14)
_MOST_SEEN = 500_000  # commits kept for matching


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of a walk. `tags`: those that landings are named by."""

    graph: Graph
    seen: list[Seen]
    tags: tuple[Tag, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """A tree in its current state, and where its last walk ended."""

    repository: Path
    role: TreeRole
    refs: Refs
    checkpoint: WalkCheckpoint
    pattern: str = ""

    @property
    def tags(self) -> tuple[Tag, ...]:
        """The tags that landings are named by: days of linux-next, else versions."""
        return self.refs.days if self.role == TreeRole.NEXT else self.refs.versions

    @property
    def branches(self) -> dict[str, str]:
        """The followed branches: the main one of the mainline and of linux-next, all of other trees; a pattern chooses
        others.
        """
        return self.refs.followed(self.pattern, every=self.role in (TreeRole.STABLE, TreeRole.MAINTAINER))

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.branches.values()))

    def next_checkpoint(self, marks: Marks) -> WalkCheckpoint:
        """Return the checkpoint for the next walk."""
        tags = (*self.refs.versions, *self.refs.days) if self.role == TreeRole.NEXT else self.refs.versions
        return WalkCheckpoint(self.branches, {tag.name: tag.commit for tag in tags}, marks)

    @property
    def late_tags(self) -> list[Version]:
        """New versions that are older than known ones: they may be the first to hold what landed in those."""
        seen = [version for name in self.checkpoint.tags if (version := versions.parse(name))]
        new = (versions.parse(tag.name) for tag in self.refs.versions if tag.name not in self.checkpoint.tags)
        return [
            candidate for candidate in new if candidate and not candidate.is_stable and seen and candidate < max(seen)
        ]

    @property
    def lost_tags(self) -> frozenset[str]:
        """The version tags deleted or moved since; not linux-next's days, which are deleted as they grow old."""
        commits = {tag.name: tag.commit for tag in self.refs.versions}
        tags = self.checkpoint.tags.items()
        return frozenset(name for name, sha in tags if commits.get(name) != sha and not name.startswith("next-"))


def walk(
    route: Route, tracked: Tracked, settings: BotSettings, behind: Collection[str], progress: Callable[[int], None]
) -> Walked:
    """Walk everything that is not in the history of the commits `behind`."""
    graph = Graph()
    prefilter = tracked.prefilter(
        (settings.address.partition("@")[0] + "+", settings.base_url.partition("://")[2] + "/r")
    )
    tips = (*route.heads, *(tag.commit for tag in route.tags))
    seen: list[Seen] = []
    for commit in read_log(route.repository, tips, behind, graph, prefilter, progress):
        named = find_references(commit.message, settings)
        seen.append(Seen(replace(commit, message=""), named))  # without messages, to save memory: 1 in 50 is a revert
        if len(seen) > _MOST_SEEN:
            raise Unreadable(f"{route.repository}: more than {_MOST_SEEN} commits match reports; is it a kernel tree?")
    graph.mark_tags(route.tags)
    graph.mark_merges(route.heads)
    return Walked(graph, seen, route.tags)


def border(route: Route, since: datetime | None) -> list[str]:
    """Return the commits whose history need not be walked.

    With a date, those are the tags from well before it. Otherwise it is what was walked last time; if a new tag may be
    the first to hold older commits, only what was in a tag then.
    """
    checkpoint = route.checkpoint
    if checkpoint.is_empty and since is None:  # nothing to look for
        return [*route.heads, *(tag.commit for tag in route.tags)]
    if since is not None:
        old = [tag for tag in route.refs.versions if tag.at < since - _MARGIN]
        return [tag.commit for tag in old if checkpoint.is_empty or checkpoint.tags.get(tag.name) == tag.commit]
    new_tags = any(checkpoint.tags.get(tag.name) != tag.commit for tag in route.tags)
    before = {*checkpoint.tags.values(), *(() if new_tags else checkpoint.branches.values())}
    return sorted(resolve(route.repository, before).values()) if before else []


def hidden(route: Route, walked: Walked, shas: Collection[str], behind: Collection[str]) -> bool:
    """Whether one of these commits is behind the border, since it is older than its known date."""
    missing = resolve(route.repository, [sha for sha in shas if sha not in walked.graph]).values()
    existing = {sha for sha in missing if sha not in walked.graph}
    return bool(existing and behind and existing - reachable_only_from(route.repository, existing, behind))


def reachable_only_from(
    repository: Path, shas: Collection[str], without: Collection[str], *, most: int = -1
) -> set[str]:
    """Return the commits reachable from `shas` but not from `without`; at most `most`, -1 for all."""
    out = git.run(repository, "rev-list", f"--max-count={most}", "--stdin", stdin=revisions(shas, without))
    return set(out.decode("ascii").split())


def left_behind(route: Route, shas: Collection[str]) -> set[str]:
    """Return those of these commits, once in the followed branches, that are no longer there."""
    before = set(route.checkpoint.branches.values())
    if not shas or not before:
        return set()
    # Nothing has left unless a followed branch was rebuilt or deleted since the last walk.
    remaining = set(resolve(route.repository, before).values())
    is_deleted = before != remaining or not route.heads
    if not is_deleted and not reachable_only_from(route.repository, remaining, route.heads, most=1):
        return set()
    existing = resolve(route.repository, shas)
    gone = set(shas) - existing.keys()
    if existing and route.heads:
        gone |= reachable_only_from(route.repository, existing.values(), route.heads) & set(existing.values())
    return gone


def last_version(route: Route) -> str:
    """Return the last version below the mainline's head ("v6.12-rc3"), "" before the first one."""
    options = ("--first-parent", "--abbrev=0", "--candidates=1", "--match", "v[0-9]*")
    excludes = (f"--exclude={name}" for name in route.refs.odd)
    try:
        out = git.run(route.repository, "describe", *options, *excludes, *route.heads[:1])
    except Unreadable:
        return ""
    name = out.decode("utf-8", "replace").strip()
    return name if versions.parse(name) else ""
