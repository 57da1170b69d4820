"""The rows of the configured trees: path, branches and role as the settings have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tracker.models import Tree
from tracker.services.catalog import tree_for
from tracker.services.reports.report_summary import refresh


@dataclass(frozen=True, slots=True)
class ConfiguredTree:
    """A tree of PERFWORK_TREES. `branches`: patterns, "" for all; `role`: None where the settings name none."""

    name: str
    path: str
    branches: str = ""
    role: str | None = None


def store_trees(configured: Iterable[ConfiguredTree]) -> list[Tree]:
    """Store what is configured, and return the rows. A tree whose configuration changed is walked from its start."""
    return [_stored(each) for each in configured]


def _stored(configured: ConfiguredTree) -> Tree:
    tree = tree_for(configured.name)
    assert tree
    role = tree.role if configured.role is None else configured.role
    if (tree.path, tree.branches, tree.role) != (configured.path, configured.branches, role):
        tree.path, tree.branches, tree.role, tree.cursor = configured.path, configured.branches, role, ""
        tree.save(update_fields=["path", "branches", "role", "cursor"])
        refresh(tree.reports.values_list("pk", flat=True))  # the role decides the section of the release's table
    return tree
