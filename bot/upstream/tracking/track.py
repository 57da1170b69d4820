"""Track one tree, from git into the database: landings of culprits, fixes, reverts, and releases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db import transaction

from bot.errors import Unreadable
from bot.git.commits import Tag
from bot.git.inspection import patch_ids
from bot.git.refs import read_refs, resolve
from bot.git.repository import is_repository
from bot.mail.identity import BotIdentity
from bot.upstream import landing_rows, walk
from bot.upstream.landings import LandingState, landing_states, revised
from bot.upstream.matching import Context, Match, Seen, lookalikes, match_all
from bot.upstream.report_events import View
from bot.upstream.tracking import authors, bases, recording, releases, stable
from bot.upstream.tracking.loading import Loaded, load_tracked
from bot.upstream.walk import Route, Walked
from bot.upstream.walk_checkpoint import load_checkpoint
from tracker.domain import versions
from tracker.domain.events import TreeRole
from tracker.models import Commit, Report, Tree
from tracker.services.reports import event_log
from tracker.services.reports.report_summary import refresh
from tracker.services.sql import bulk, locks
from tracker.services.sql.locks import Lock

SHA_LENGTH = 40  # digits of a sha


@dataclass(frozen=True, slots=True)
class TrackTally:
    """What was new in a walk."""

    landings: int = 0
    events: int = 0
    unchanged: bool = False


def _nothing(count: int = 0) -> None:
    pass


def track(
    tree: Tree,
    identity: BotIdentity,
    now: datetime,
    others: Sequence[Path] = (),
    progress: Callable[[int], None] = _nothing,
    check_lease: Callable[[], None] = _nothing,
) -> TrackTally:
    """Walk what is new in one tree. `others`: clones that may hold a commit whose patch-id is needed; `check_lease`
    raises if another worker has taken the tree over.

    The findings and the checkpoint are stored in one transaction after git has finished, so that a walk of minutes
    doesn't block other writers. Raise Unreadable if git can't read the tree; nothing is stored then.
    """
    repository = Path(tree.path)
    if not tree.path or not is_repository(repository):
        raise Unreadable(f"{tree.name}: {tree.path}: not a git repository; set PERFWORK_TREES to a clone of it")
    checkpoint = load_checkpoint(tree.cursor)
    route = Route(repository, TreeRole(tree.role), read_refs(repository), checkpoint, tree.branches)
    if tree.branches and not route.heads:
        raise Unreadable(f"{tree.name}: {tree.path}: no branch matches {tree.branches}; correct it in PERFWORK_TREES")
    loaded = load_tracked(tree, checkpoint.marks, now, identity.aliases)
    next_checkpoint = route.next_checkpoint(loaded.marks)
    if next_checkpoint == checkpoint:
        return TrackTally(unchanged=True)
    known = landing_rows.known_states(tree)
    _complete_shas(repository, loaded)
    walked = _walk(route, loaded, known, identity, progress)
    matches = _match(walked.seen, loaded, identity, repository, others)
    update = _TreeUpdate(tree, loaded, known, matches, _changed(route, loaded, walked, known, matches, now), now)
    found, written_by = bases.find(repository, route.refs), authors.find(repository)
    with transaction.atomic():
        locks.take(Lock.TREE_WALK)
        check_lease()
        events = update.store(route)
        bases.store(found)
        authors.store(written_by)
        Tree.objects.filter(pk=tree.pk).update(cursor=next_checkpoint.dump(), walked_at=now)
        if route.role is TreeRole.MAINLINE and tree.walked_at is None:  # from now on "not merged" is known
            for part in bulk.in_parts(Report.objects.filter(landing="").values_list("pk", flat=True)):
                event_log.refold(part)
    tree.cursor = next_checkpoint.dump()
    return TrackTally(sum(1 for state in update.changed.values() if state.is_present), events)


def _complete_shas(repository: Path, loaded: Loaded) -> None:
    """Replace abbreviated shas, as given in old reports, by the full ones that the tree knows."""
    short = [sha for sha in loaded.tracked.related if len(sha) < SHA_LENGTH]
    learned = resolve(repository, short) if short else {}
    for known, full_sha in learned.items():
        loaded.tracked.set_full_sha(known, full_sha)
        if not Commit.objects.filter(sha=full_sha).exists():
            Commit.objects.filter(sha=known).update(sha=full_sha)
    if learned:  # report summaries hold the sha for searching
        refresh(Report.objects.filter(culprit__sha__in=learned.values()).values_list("pk", flat=True))


def _walk(
    route: Route,
    loaded: Loaded,
    known: Mapping[str, LandingState],
    identity: BotIdentity,
    progress: Callable[[int], None],
) -> Walked:
    """Walk as far back as the new items need it; from the beginning if a culprit is older than its known date."""
    lost, late = route.lost_tags, route.late_tags
    unsure = [state.merged_at or state.at for state in known.values() if _is_unsure(state, lost, late)]
    since = min([each for each in (loaded.since, *unsure) if each], default=None)
    behind = walk.border(route, since)
    walked = walk.walk(route, loaded.tracked, identity, behind, progress)
    if route.role is not TreeRole.NEXT and since and walk.hidden(route, walked, loaded.fresh, behind):
        return walk.walk(route, loaded.tracked, identity, (), progress)
    return walked


def _is_unsure(state: LandingState, lost: Collection[str], late: Sequence[versions.Version]) -> bool:
    """Whether the first tag of a commit may have changed: it was deleted, or an older one came late."""
    version = versions.parse(state.tag) if late else None
    return state.tag in lost or (version is not None and any(version > each for each in late))


def _match(
    seen: Sequence[Seen], loaded: Loaded, identity: BotIdentity, repository: Path, others: Sequence[Path]
) -> list[Match]:
    named = {sha for each in seen for sha, _ in each.named.reverts}
    alike = lookalikes(seen, loaded.tracked)
    context = Context(
        tracked=loaded.tracked,
        robots=identity.robots | {identity.address},
        patch_ids=patch_ids([repository, *others], alike) if alike else {},
        existing_shas=set(resolve(repository, named)) if named else (),
    )
    return match_all(seen, context)


def _changed(
    route: Route,
    loaded: Loaded,
    walked: Walked,
    known: Mapping[str, LandingState],
    matches: Sequence[Match],
    now: datetime,
) -> dict[str, LandingState]:
    """Return the landing states of followed commits that are new or changed."""
    shas = {*loaded.tracked.related, *recording.suggested_commits(), *(match.commit.sha for match in matches)}
    after = walk.last_version(route) if route.role is TreeRole.MAINLINE and route.heads else ""
    lost = route.lost_tags
    unsafe = {sha for sha, state in known.items() if sha not in walked.graph and _may_be_gone(state, route.role, lost)}
    return revised(
        known,
        landing_states(walked, shas, after),
        walk.left_behind(route, unsafe),
        lost,
        now,
        needs_branch=route.role is TreeRole.NEXT,
    )


def _may_be_gone(state: LandingState, role: TreeRole, lost: Collection[str]) -> bool:
    """Whether a commit may have left: untagged commits of the mainline, all in the trees before it."""
    safe = role is TreeRole.MAINLINE and state.tag and state.tag not in lost
    return state.is_present and role is not TreeRole.STABLE and not safe


@dataclass(frozen=True, slots=True)
class _TreeUpdate:
    """A finished walk, with all that is needed to store it."""

    tree: Tree
    loaded: Loaded
    known: Mapping[str, LandingState]
    matches: Sequence[Match]
    changed: Mapping[str, LandingState]
    now: datetime

    def store(self, route: Route) -> int:
        """Store everything new. Return the number of events."""
        sure = [match for match in self.matches if match.sure]
        rows = {match.commit.sha: _row(match) for match in self.matches}
        shas = {*self.changed, *(match.commit.sha for match in sure)}
        keys = landing_rows.ensure_commits({sha: rows.get(sha) or Commit(sha=sha) for sha in shas})
        landing_rows.store(self.tree, self.changed, keys, self.now)
        recording.relate(self.tree, sure, keys)
        if route.role is TreeRole.MAINLINE:
            releases.store(route.refs.versions)
        view = self._view(route)
        # A commit that is known only by an abbreviated sha is not in this tree.
        fresh = {sha for sha in self.loaded.fresh if len(sha) >= SHA_LENGTH}
        current_states = list(view.current_states(shas | fresh))
        events = recording.record(view, current_states)
        recording.suggest(view, [match for match in self.matches if not match.sure])
        recording.suggest_again(view, self.changed)
        recording.suggest_dropped(current_states)
        self._update_stable(route.refs.versions, shas)
        return events

    def _view(self, route: Route) -> View:
        related = self.loaded.tracked.related
        return View(
            tree=self.tree.name,
            role=route.role,
            tracked=self.loaded.tracked,
            landings={**self.known, **self.changed},
            titles={match.commit.sha: match.commit.title for match in self.matches},
            mainline=landing_rows.in_mainline(related) if route.role is not TreeRole.MAINLINE else (),
            day=route.refs.days[-1].name if route.refs.days else "",
            now=self.now,
        )

    def _update_stable(self, tags: Sequence[Tag], shas: Collection[str]) -> None:
        tracked = self.loaded.tracked
        affected = {report for sha in (*shas, *self.loaded.fresh) for report in tracked.related.get(sha, ())}
        stable.update_series(tracked, tracked.reports if stable.store_series(self.tree, tags) else affected)


def _row(match: Match) -> Commit:
    """Return the row of a matched commit, as in the log."""
    commit = match.commit
    return Commit(
        sha=commit.sha,
        title=commit.title[:1000],
        author_name=commit.author_name[:300],
        author_email=commit.author_email[:300],
        authored_at=commit.authored_at,
    )
