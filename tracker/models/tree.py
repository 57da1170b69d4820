"""A git tree, and the landings in it."""

from __future__ import annotations

from django.db import models

from tracker.models.commit import Commit
from tracker.models.lease import Lease
from tracker.models.natural import NaturalManager


class TreeRole(models.TextChoices):
    """What a commit's being in a tree means."""

    MAINLINE = "mainline"
    NEXT = "next"
    STABLE = "stable"
    MAINTAINER = "maintainer"


class Tree(Lease):
    """A git repository that results come from or landings are looked for in."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    role = models.TextField(choices=TreeRole.choices, default=TreeRole.MAINTAINER)
    url = models.TextField(blank=True)
    path = models.TextField(blank=True, help_text="the local clone; empty: known by name only")
    cursor = models.TextField(blank=True, help_text="what was walked last: a digest of its refs and of what we track")
    error = models.TextField(blank=True)

    objects = NaturalManager["Tree"]()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=TreeRole.values), name="tree_role_is_known"),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)


class Landing(models.Model):
    """The first version tag of a tree that holds a commit: "merged at v5.6-rc1"."""

    NATURAL = ("commit__sha", "tree__name")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="landings")
    tree = models.ForeignKey(Tree, on_delete=models.CASCADE, related_name="landings")
    tag = models.TextField()
    at = models.DateTimeField()

    objects = NaturalManager["Landing"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["commit", "tree"], name="a_commit_lands_once_in_a_tree"),
            models.CheckConstraint(condition=~models.Q(tag=""), name="landing_names_a_tag"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.sha10} in {self.tree.name} at {self.tag}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.commit.sha, self.tree.name)
