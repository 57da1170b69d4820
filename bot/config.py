"""Who the bot is and whom it believes: the settings, read once at the edge and handed on as a value."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from bot.git import is_repository
from bot.identity import Identity
from tracker.models import Tree
from tracker.registry import tree_for


def identity() -> Identity:
    """The identity that the settings describe."""
    return Identity(
        address=settings.PERFWORK_BOT_ADDRESS.lower(),
        name=settings.PERFWORK_BOT_NAME,
        list_address=settings.PERFWORK_LIST_ADDRESS.lower(),
        lists=tuple(address.lower() for address in settings.PERFWORK_LISTS),
        prefix=settings.PERFWORK_COMMAND_PREFIX,
        base_url=settings.PERFWORK_BASE_URL,
        robots=frozenset(address.lower() for address in settings.PERFWORK_ROBOTS),
        operators=frozenset(address.lower() for address in settings.PERFWORK_OPERATORS),
        trust=settings.PERFWORK_TRUST,
    )


def tree_paths() -> list[Path]:
    """The clones of PERFWORK_TREES that are there, to ask about commits."""
    return [path for path in map(Path, settings.PERFWORK_TREES.values()) if is_repository(path)]


def configured_trees() -> list[Tree]:
    """The trees of PERFWORK_TREES, each with its row, which takes over the path that the setting has now."""
    trees: list[Tree] = []
    for name, path in settings.PERFWORK_TREES.items():
        tree = tree_for(name)
        assert tree
        if tree.path != path:
            tree.path, tree.cursor = path, ""
            tree.save(update_fields=["path", "cursor"])
        trees.append(tree)
    return trees
