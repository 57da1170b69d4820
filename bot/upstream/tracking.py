"""One tree, from git into the database: landings of culprits, fixes, reverts, and releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db import transaction

from bot.errors import Unreadable
from bot.git import is_repository
from bot.identity import Identity
from bot.upstream import bases, landings, recording, stable, walk
from bot.upstream.inspection import patch_ids
from bot.upstream.loading import Loaded, load_tracked
from bot.upstream.matching import Context, Match, Seen, lookalikes, match_all
from bot.upstream.memory import load
from bot.upstream.places import Place, found_places, revised
from bot.upstream.recording import Findings
from bot.upstream.refs import Tag, read_refs, resolve
from bot.upstream.walk import Route, Walked
from tracker import versions
from tracker.models import Commit, Release, Tree
from tracker.models.tree import TreeRole


@dataclass(frozen=True, slots=True)
class TrackTally:
    """What a walk found that was new."""

    landings: int = 0
    events: int = 0
    unchanged: bool = False


def track(
    tree: Tree,
    identity: Identity,
    now: datetime,
    others: Sequence[Path] = (),
    progress: Callable[[int], None] = lambda count: None,
) -> TrackTally:
    """Walk what is new in one tree. `others`: clones that may hold a commit whose patch-id is asked for.

    What is found and where the walk stands are stored in one transaction, after git has done its work: a walk of
    minutes must not keep others from writing. Unreadable where git can't read the tree; then nothing is stored.
    """
    repository = Path(tree.path)
    if not tree.path or not is_repository(repository):
        raise Unreadable(f"{tree.name}: {tree.path}: not a git repository; set PERFWORK_TREES to a clone of it")
    memory = load(tree.cursor)
    route = Route(repository, TreeRole(tree.role), read_refs(repository), memory, tree.branches)
    if tree.branches and not route.heads:
        raise Unreadable(
            f"{tree.name}: {tree.path}: no branch is called {tree.branches}; see its name in PERFWORK_TREES"
        )
    loaded = load_tracked(tree, memory.marks, now, identity.aliases)
    ended = route.remember(loaded.marks)
    if ended == memory:
        return TrackTally(unchanged=True)
    known = landings.known_places(tree)
    _learn_whole_shas(repository, loaded)
    walked = _walk(route, loaded, known, identity, progress)
    matches = _match(walked.seen, loaded, identity, repository, others)
    trip = _Trip(tree, route, loaded, walked, known, matches, now)
    with transaction.atomic():
        tally = trip.store()
        Tree.objects.filter(pk=tree.pk).update(cursor=ended.dump(), error="", walked_at=now)
    tree.cursor = ended.dump()
    return tally


def _learn_whole_shas(repository: Path, loaded: Loaded) -> None:
    """Old reports told ten digits of a sha; the tree knows the rest, and so do we from now on."""
    short = [sha for sha in loaded.tracked.related if len(sha) < 40]
    for known, whole in (resolve(repository, short) if short else {}).items():
        for related in loaded.tracked.related[known].values():
            loaded.tracked.relate(whole, related)
        if not Commit.objects.filter(sha=whole).exists():
            Commit.objects.filter(sha=known).update(sha=whole)


def _walk(
    route: Route,
    loaded: Loaded,
    known: Mapping[str, Place],
    identity: Identity,
    progress: Callable[[int], None],
) -> Walked:
    """The walk, as far back as what is new needs it; to the beginning where a culprit is older than anybody told."""
    homeless = [place.merged_at or place.at for place in known.values() if place.tag in route.lost_tags]
    since = min([each for each in (loaded.since, *homeless) if each], default=None)
    walked = walk.walk(route, loaded.tracked, identity, since, progress)
    if route.role != TreeRole.NEXT and since and walk.hidden(route, walked, loaded.fresh, since):
        return walk.walk(route, loaded.tracked, identity, walk.BEGINNING, progress)
    return walked


def _match(
    seen: Sequence[Seen], loaded: Loaded, identity: Identity, repository: Path, others: Sequence[Path]
) -> list[Match]:
    named = {sha for each in seen for sha, _ in each.named.reverts}
    alike = lookalikes(seen, loaded.tracked)
    context = Context(
        tracked=loaded.tracked,
        robots=identity.robots | {identity.address},
        patch_ids=patch_ids([repository, *others], alike) if alike else {},
        here=set(resolve(repository, named)) if named else (),
    )
    return match_all(seen, context)


@dataclass(frozen=True, slots=True)
class _Trip:
    """A walk that came to its end, with all that is needed to store it."""

    tree: Tree
    route: Route
    loaded: Loaded
    walked: Walked
    known: Mapping[str, Place]
    matches: Sequence[Match]
    now: datetime

    def store(self) -> TrackTally:
        """Everything new into the database."""
        sure = [match for match in self.matches if match.sure]
        asked = {*self.loaded.tracked.related, *recording.waiting_commits()}
        asked.update(match.commit.sha for match in self.matches)
        changed = self._changed(asked)
        seen = {match.commit.sha: _row(match) for match in self.matches}
        wanted = {*(asked & changed.keys()), *(match.commit.sha for match in sure)}
        keys = landings.ensure_commits({sha: seen.get(sha) or Commit(sha=sha) for sha in wanted})
        landings.store(self.tree, {sha: place for sha, place in changed.items() if sha in keys}, keys, self.now)
        recording.relate(self.tree, sure, keys)
        if self.route.role == TreeRole.MAINLINE:
            store_releases(self.walked.tags)
        found = self._findings({**self.known, **changed})
        new = {*changed, *self.loaded.fresh, *(match.commit.sha for match in sure)}
        events = recording.record(found, new)
        recording.suggest(found, [match for match in self.matches if not match.sure])
        recording.suggest_again(found, changed)
        recording.suggest_dropped(found, changed)
        if self.route.refs.versions:
            bases.fill(self.route.repository)
        touched = {match.report for match in sure} | self._reports_of({*changed, *self.loaded.fresh})
        if self.route.role == TreeRole.STABLE and stable.remember(self.tree, self.route.refs.versions):
            touched = set(self.loaded.tracked.reports)
        stable.tell(self.loaded.tracked, touched)
        return TrackTally(sum(1 for place in changed.values() if place.is_there), events)

    def _changed(self, asked: set[str]) -> dict[str, Place]:
        after = walk.last_version(self.route, self.route.heads[0]) if self._asks_after() else ""
        found = found_places(self.walked, asked, after)
        return revised(
            self.known,
            found,
            walk.left_behind(self.route, self._may_be_gone()),
            self.route.lost_tags,
            self.now,
            needs_branch=self.route.role == TreeRole.NEXT,
        )

    def _asks_after(self) -> bool:
        return self.route.role == TreeRole.MAINLINE and bool(self.route.heads)

    def _may_be_gone(self) -> set[str]:
        """What is no longer safe in a version: untagged commits of the mainline, all of other trees."""
        if self.route.role == TreeRole.STABLE:
            return set()
        tagged = self.route.role != TreeRole.MAINLINE
        there = {sha for sha, place in self.known.items() if place.is_there and (tagged or not place.tag)}
        return {sha for sha in there if sha not in self.walked.graph}

    def _findings(self, places: Mapping[str, Place]) -> Findings:
        related = self.loaded.tracked.related
        return Findings(
            tree=self.tree,
            tracked=self.loaded.tracked,
            places=places,
            titles={match.commit.sha: match.commit.title for match in self.matches},
            mainline=landings.in_mainline(related) if self.route.role != TreeRole.MAINLINE else (),
            day=self.route.refs.days[-1].name if self.route.refs.days else "",
            now=self.now,
        )

    def _reports_of(self, shas: Iterable[str]) -> set[int]:
        return {report for sha in shas for report in self.loaded.tracked.related.get(sha, ())}


def _row(match: Match) -> Commit:
    """The row of what was matched, as the log tells it."""
    commit = match.commit
    return Commit(
        sha=commit.sha,
        title=commit.title[:1000],
        author_name=commit.author_name[:300],
        author_email=commit.author_email[:300],
        authored_at=commit.authored_at,
    )


def store_releases(tags: Sequence[Tag]) -> None:
    """Every cycle that the tags show, with its date once it is released."""
    known = {release.version: release for release in Release.objects.all()}
    for tag in tags:
        version = versions.parse(tag.name)
        whole = versions.parse(version.cycle) if version else None
        if version is None or whole is None or version.update:
            continue
        release = known.get(version.cycle)
        if release is None:
            release, _ = Release.objects.get_or_create(version=version.cycle, defaults={"number": whole.number})
            known[version.cycle] = release
        if version.is_release and release.released_at is None:
            release.released_at = tag.at
            release.save(update_fields=["released_at"])
