"""A git tree, and the landings in it."""

from __future__ import annotations

from django.db import models

from tracker.happenings import TreeRole
from tracker.models.commit import Commit
from tracker.models.lease import Held
from tracker.models.natural import NaturalManager

__all__ = ["Landing", "Tree", "TreeRole"]


class Tree(Held):
    """A git repository that results come from or landings are looked for in."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    role = models.TextField(
        choices=[(role.value, role.value.capitalize()) for role in TreeRole], default=TreeRole.MAINTAINER
    )
    url = models.TextField(blank=True)
    path = models.TextField(blank=True, help_text="the local clone; empty: known by name only")
    branches = models.TextField(blank=True, help_text="the followed ones, as in linux-6.*; empty: what its role means")
    cursor = models.TextField(blank=True, help_text="where the last walk ended (bot/upstream/memory.py)")
    error = models.TextField(blank=True)
    series = models.JSONField(
        default=dict, blank=True, help_text="of a stable tree: each series and its newest release"
    )
    fetched_at = models.DateTimeField(null=True, blank=True, help_text="when its remote was asked last")
    walked_at = models.DateTimeField(null=True, blank=True)

    objects = NaturalManager["Tree"]()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=list(TreeRole)), name="tree_role_is_known"),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)


class Landing(models.Model):
    """A tracked commit in a tree: the first tag with it ("merged at v5.6-rc1"), or since when it waits for one."""

    NATURAL = ("commit__sha", "tree__name")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="landings")
    tree = models.ForeignKey(Tree, on_delete=models.CASCADE, related_name="landings")
    tag = models.TextField(blank=True, help_text="the first version, or day of linux-next, that holds it")
    at = models.DateTimeField(help_text="the date of the tag; of the merge while there is none")
    merge = models.TextField(blank=True, help_text="the commit that brought it into the branch")
    merged_at = models.DateTimeField(null=True, blank=True)
    after = models.TextField(blank=True, help_text="while no version holds it: the last one before it")
    gone_at = models.DateTimeField(null=True, blank=True, help_text="since when the tree has it no longer")
    back_at = models.DateTimeField(null=True, blank=True, help_text="when it came back after that")

    objects = NaturalManager["Landing"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["commit", "tree"], name="a_commit_lands_once_in_a_tree"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.sha10} in {self.tree.name} at {self.tag or 'no version yet'}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.commit.sha, self.tree.name)
