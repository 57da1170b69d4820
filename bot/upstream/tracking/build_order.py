"""The builds of curves in the order of the mainline: what was measured is looked for in its first-parent history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bot.git.order import git_order
from bot.git.refs import read_refs, resolve
from tracker.domain.events import TreeRole
from tracker.models import Tree
from tracker.services.curves import places, reordering


def order_builds(tree: Tree, now: datetime) -> int:
    """Put builds that the mainline holds in its order. Returns how many curves changed. Raise Unreadable."""
    if tree.role != TreeRole.MAINLINE:
        return 0
    names = places.sought(Tree.objects.values_list("walked_at", flat=True).get(pk=tree.pk), now)
    known = _in_mainline(tree, names) if names else {}
    return reordering.store_places(known, [name for name in names if name not in known], now)


def _in_mainline(tree: Tree, names: Sequence[str]) -> dict[str, datetime]:
    """Return the places of those commits and versions that the mainline holds."""
    repository, refs = Path(tree.path), read_refs(Path(tree.path))
    heads = refs.followed(tree.branches, every=False).values()
    if not heads:
        return {}
    tagged = {tag.name: tag.commit for tag in refs.versions}
    commits = resolve(repository, [name for name in names if name not in tagged])
    commits |= {name: tagged[name] for name in names if name in tagged}
    found = git_order(repository, next(iter(heads)), sorted(set(commits.values())))
    return {name: found[sha] for name, sha in commits.items() if sha in found}
