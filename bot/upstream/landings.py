"""What a walk over a tree finds, and what follows for a commit: the first version that has it, and in which stable
series its fix is missing.

A `Route` is a tree as it is now, with the checkpoint where the last walk ended: its refs, and marks for what was
followed then, kept as one line of JSON in `Tree.cursor`; an unreadable checkpoint counts as empty, so the tree is
walked from its beginning. A walk goes from the followed branches and tags back to its border, the commits whose
history need not be walked. With a date these are the tags from well before it (clocks differ, so by 14 days);
otherwise what was walked last time, unless a new tag may be the first to hold older commits. Tags may come late, move
or be deleted, and branches may be rewound: `late_tags`, `lost_tags` and `left_behind` find the landings that this puts
in doubt.

The landing state of a commit in a tree is its first tag, or since when it waits for one, or that it is gone. A first
tag stays the first unless it is deleted. In linux-next a commit is there only as long as today's branch has it, and
since old day tags are deleted there, the first one seen stays; for versions the walk is authoritative. From the tags
of landings follows what the stable series carry: "in v6.6.12, fix missing". A series is alive if its last release is at
most 180 days older than the newest of all. A fix that the series reverted again does not count.

The walk uses git and no database, the rules work on values; what reads and writes rows stands last.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from bot.git import repository as git
from bot.git.history import Graph, read_log
from bot.git.repository import Refs, Tag, Unreadable, parse_timestamp, resolve, revisions
from bot.mail.settings import BotSettings
from bot.upstream.matching import Seen, Tracked, find_references
from tracker.domain import versions
from tracker.domain.events import Part, TreeRole
from tracker.domain.versions import Version
from tracker.models import Commit, Landing, StableSeries, Tree
from tracker.services.database import in_parts
from tracker.services.report_summary import refresh

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


# --- What stable series carry ---

# A series whose last release is this much older than the newest of all is end of life (kernel.org/category/releases).
_MAX_AGE = timedelta(days=180)


def live_series(tags: Sequence[Tag]) -> dict[str, str]:
    """Return the series that still get releases, each with its newest: {"v6.6": "v6.6.12"}."""
    newest: dict[str, tuple[Version, Tag]] = {}
    for tag in tags:
        version = versions.parse(tag.name)
        if version and version.is_stable and not version.is_candidate:
            previous = newest.get(version.cycle)
            if previous is None or version > previous[0]:
                newest[version.cycle] = (version, tag)
    last = max((tag.at for _, tag in newest.values()), default=None)
    return {cycle: tag.name for cycle, (_, tag) in newest.items() if last and tag.at >= last - _MAX_AGE}


def carried(
    cycle: str, culprits: Collection[str], cures: Collection[tuple[Collection[str], Collection[str]]]
) -> str | None:
    """Return None if a series doesn't carry a culprit that landed at these tags, "" if it does and its fix is missing,
    else the release that brought the fix.

    `cures`: of each fix or revert the tags it landed at, in the mainline and in stable trees, and those of its own
    reverts: a series that reverted it has none.
    """
    base = versions.parse(cycle)
    since = min(_releases_with(base, culprits), default=None) if base else None
    if base is None or since is None:
        return None
    fix_releases = [
        release for tags, undone in cures if not _releases_with(base, undone) for release in _releases_with(base, tags)
    ]
    if not fix_releases:
        return ""
    cured = min(fix_releases)
    return None if cured <= since or cured == base else f"{cured.cycle}.{cured.extra or cured.update}"


def _releases_with(base: Version, tags: Collection[str]) -> list[Version]:
    """Return the releases of a series that brought what landed at these tags; its base for all that is older."""
    tagged = [version for tag in tags if (version := versions.parse(tag))]
    updates = [release for release in tagged if release.is_stable and release.cycle == base.cycle]
    return [*updates, *(base for release in tagged if release <= base and not release.is_stable)]


# --- Landing states ---


@dataclass(frozen=True, slots=True)
class LandingState:
    """The values of a `Landing`."""

    tag: str = ""
    at: datetime | None = None
    merge: str = ""
    merged_at: datetime | None = None
    after: str = ""
    gone_at: datetime | None = None
    back_at: datetime | None = None

    @property
    def is_present(self) -> bool:
        return self.gone_at is None


def landing_states(walked: Walked, shas: Collection[str], after: str) -> dict[str, LandingState]:
    """Return the landing states of those commits that the walk saw in a tag or in a branch."""
    states: dict[str, LandingState] = {}
    for sha in shas:
        number, merge = walked.graph.tag_of(sha), walked.graph.merge_of(sha)
        if number < 0 and merge is None:
            continue
        tag = walked.tags[number] if number >= 0 else None
        merged_at = parse_timestamp(merge[1]) if merge else None
        states[sha] = LandingState(
            tag=tag.name if tag else "",
            at=tag.at if tag else merged_at,
            merge=merge[0] if merge else "",
            merged_at=merged_at,
            after="" if tag else after,
        )
    return states


def revised(
    old: LandingState | None, new: LandingState | None, lost_tags: Collection[str], now: datetime, *, needs_branch: bool
) -> LandingState | None:
    """Return the landing state of a commit: `old` is stored, `new` is what this walk found.

    A first tag stays the first, unless it was deleted. `needs_branch`: in linux-next a commit is there only as long as
    today's branch has it, whatever the earlier days had.
    """
    if new is not None and needs_branch and not new.merge:
        new = replace(new, gone_at=(old.gone_at if old else None) or now)
    if old is None or new is None:
        if old and old.tag in lost_tags:
            return replace(old, tag="", at=old.merged_at or now, gone_at=None if old.merge else now)
        return old or new
    first = old if old.merge and (needs_branch or not new.merge) else new
    merge, merged_at = first.merge, first.merged_at
    came_back = old.gone_at is not None and new.is_present
    # linux-next deletes its old day tags, so the first one seen stays. For versions the walk is authoritative.
    keeps = old.tag and old.tag not in lost_tags and not (came_back and new.tag) and (needs_branch or not new.tag)
    tag, at = (old.tag, old.at) if keeps else (new.tag, new.at)
    return replace(
        new,
        tag=tag,
        at=at,
        merge=merge,
        merged_at=merged_at,
        after="" if tag else old.after or new.after,
        back_at=now if came_back else old.back_at,
    )


# --- Landing states, stored ---

_FIELDS = ("tag", "at", "merge", "merged_at", "after", "gone_at", "back_at")


def known_states(tree: Tree) -> dict[str, LandingState]:
    """Return the landing states stored for this tree, by sha."""
    rows = Landing.objects.filter(tree=tree).values_list("commit__sha", *_FIELDS)
    return {sha: LandingState(*values) for sha, *values in rows.iterator(chunk_size=2000)}


def in_mainline(shas: Collection[str]) -> set[str]:
    """Return those of these commits that a mainline tree holds."""
    landed: set[str] = set()
    for batch in in_parts(shas):
        rows = Landing.objects.filter(tree__role=TreeRole.MAINLINE, gone_at=None, commit__sha__in=batch)
        landed.update(rows.values_list("commit__sha", flat=True))
    return landed


def ensure_commits(commits: Mapping[str, Commit]) -> dict[str, int]:
    """Return the ids of these commits by sha; unknown ones are created as given."""
    keys = _keys(commits)
    missing = [commit for sha, commit in sorted(commits.items()) if sha not in keys]
    Commit.objects.bulk_create(missing, ignore_conflicts=True, batch_size=500)
    return keys | _keys([commit.sha for commit in missing]) if missing else keys


def _keys(shas: Collection[str]) -> dict[str, int]:
    keys: dict[str, int] = {}
    for batch in in_parts(shas):
        keys.update(Commit.objects.filter(sha__in=batch).values_list("sha", "pk"))
    return keys


def store(tree: Tree, states: Mapping[str, LandingState], keys: Mapping[str, int], now: datetime) -> None:
    """Store landing states that are new or changed."""
    rows = [
        Landing(
            commit_id=keys[sha],
            tree=tree,
            **{name: getattr(state, name) for name in _FIELDS if name != "at"},
            at=state.at or state.merged_at or now,
        )
        for sha, state in sorted(states.items())
    ]
    Landing.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["commit", "tree"], update_fields=list(_FIELDS), batch_size=500
    )


# --- Stable series, stored ---


def store_series(tree: Tree, tags: Sequence[Tag]) -> bool:
    """Store the series that a stable tree has now; other trees have none. Return True if there are other series than
    before, since they may carry anything.
    """
    newest_of = live_series(tags) if tree.role == TreeRole.STABLE else {}
    before: dict[str, str] = tree.series
    if newest_of == before:
        return False
    tree.series = newest_of
    Tree.objects.filter(pk=tree.pk).update(series=newest_of)
    gone = StableSeries.objects.filter(tree=tree).exclude(series__in=newest_of)
    reports = list(gone.values_list("report", flat=True))
    gone.delete()
    refresh(reports)
    for series, newest in newest_of.items():
        StableSeries.objects.filter(tree=tree, series=series).exclude(newest=newest).update(newest=newest)
    return newest_of.keys() != before.keys()


def update_series(tracked: Tracked, reports: Collection[int]) -> None:
    """Update what the series of every stable tree carry of the culprits of these reports."""
    trees = [tree for tree in Tree.objects.filter(role=TreeRole.STABLE) if tree.series]
    if not trees:
        return
    # The tags at which commits landed, in the mainline and in stable trees
    landings = Landing.objects.filter(tree__role__in=(TreeRole.MAINLINE, TreeRole.STABLE), gone_at=None)
    landings = landings.exclude(tag="")
    for batch in in_parts(pk for pk in reports if not tracked.reports[pk].improvement):
        tags: dict[str, set[str]] = {}
        for shas in in_parts({sha for report in batch for sha in tracked.commits[report]}):
            for sha, tag in landings.filter(commit__sha__in=shas).values_list("commit__sha", "tag"):
                tags.setdefault(sha, set()).add(tag)
        rows = [row for tree in trees for report in batch for row in _rows(tree, tracked, report, tags)]
        StableSeries.objects.filter(report__in=batch).delete()
        StableSeries.objects.bulk_create(rows, batch_size=500)
        refresh(batch)


def _rows(tree: Tree, tracked: Tracked, report: int, tags: Mapping[str, Collection[str]]) -> Iterator[StableSeries]:
    commits = tracked.commits[report]
    culprits = {tag for sha, related in commits.items() if related.part is Part.CULPRIT for tag in tags.get(sha, ())}
    undone: dict[str, set[str]] = {}
    for sha, related in commits.items():
        if related.part is Part.UNDO:
            undone.setdefault(related.undoes, set()).update(tags.get(sha, ()))
    cures = [
        (tags.get(sha, ()), undone.get(sha, ()))
        for sha, related in commits.items()
        if related.part in (Part.FIX, Part.REVERT)
    ]
    for cycle, newest in tree.series.items():
        base, fixed_in = versions.parse(cycle), carried(cycle, culprits, cures)
        if base and fixed_in is not None:
            yield StableSeries(
                report_id=report, tree=tree, series=cycle, number=base.number, newest=newest, fixed_in=fixed_in
            )
