"""Landing states of commits in a tree, from and into the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from bot.upstream.landings import LandingState
from tracker.domain.events import TreeRole
from tracker.models import Commit, Landing, Tree
from tracker.services.sql.bulk import in_parts

_FIELDS = ("tag", "at", "merge", "merged_at", "after", "gone_at", "back_at")


def known_states(tree: Tree) -> dict[str, LandingState]:
    """Return the landing states stored for this tree, by sha."""
    rows = Landing.objects.filter(tree=tree).values_list("commit__sha", *_FIELDS)
    return {sha: LandingState(*values) for sha, *values in rows.iterator(chunk_size=2000)}


def in_mainline(shas: Collection[str]) -> set[str]:
    """Return those of these commits that a mainline tree holds."""
    found: set[str] = set()
    for batch in in_parts(shas):
        rows = Landing.objects.filter(tree__role=TreeRole.MAINLINE, gone_at=None, commit__sha__in=batch)
        found.update(rows.values_list("commit__sha", flat=True))
    return found


def ensure_commits(commits: Mapping[str, Commit]) -> dict[str, int]:
    """Return the ids of these commits by sha; unknown ones are created as given."""
    known = _keys(commits)
    missing = [commit for sha, commit in sorted(commits.items()) if sha not in known]
    Commit.objects.bulk_create(missing, ignore_conflicts=True, batch_size=500)
    return known | _keys([commit.sha for commit in missing]) if missing else known


def _keys(shas: Collection[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for batch in in_parts(shas):
        found.update(Commit.objects.filter(sha__in=batch).values_list("sha", "pk"))
    return found


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
