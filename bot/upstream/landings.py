"""Landings: the first version of a tree that has a commit, and which stable series still lack a fix.

The landing state of a commit in a tree is its first tag, or since when it waits for one, or that it is gone. A first
tag stays the first unless it is deleted. In linux-next a commit is there only as long as today's branch has it, and
since old day tags are deleted there, the first one seen stays; for versions the walk is authoritative.

From the tags of landings follows what the stable series carry: "in v6.6.12, fix missing". A series is alive if its
last release is at most 180 days older than the newest of all (kernel.org/category/releases). A fix that the series
reverted again does not count.

The rules work on values; the functions that read and write `Landing` and `StableSeries` stand apart from them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.git.repository import Tag, parse_timestamp
from bot.upstream.matching import Tracked
from bot.upstream.walk import Walked
from tracker.domain import versions
from tracker.domain.events import Part, TreeRole
from tracker.domain.versions import Version
from tracker.models import Commit, Landing, StableSeries, Tree
from tracker.services.database import in_parts
from tracker.services.report_summary import refresh

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
    stored: Mapping[str, LandingState],
    seen: Mapping[str, LandingState],
    gone: Collection[str],
    lost_tags: Collection[str],
    now: datetime,
    *,
    needs_branch: bool,
) -> dict[str, LandingState]:
    """Return the landing states that are new or changed.

    A first tag stays the first, unless it was deleted. `needs_branch`: in linux-next a commit is there only as long as
    today's branch has it, whatever the earlier days had.
    """
    changed: dict[str, LandingState] = {}
    for sha in {*stored, *seen}:
        old = stored.get(sha)
        state = _revised(old, seen.get(sha), lost_tags, now, needs_branch=needs_branch)
        if sha in gone and state and state.is_present:
            state = replace(state, gone_at=now)
        if state and state != old:
            changed[sha] = state
    return changed


def _revised(
    old: LandingState | None, new: LandingState | None, lost_tags: Collection[str], now: datetime, *, needs_branch: bool
) -> LandingState | None:
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
