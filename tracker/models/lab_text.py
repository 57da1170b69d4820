"""What the lab says of its suites and parameters: the prose that every release report repeats."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager


class Suite(models.Model):
    """A test suite in a sentence or three; `position`: its place in comparisons, the others come behind."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    description = models.TextField(blank=True)
    position = models.PositiveIntegerField(default=1000)

    objects = NaturalManager["Suite"]()

    class Meta:
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)


class Parameter(models.Model):
    """A parameter of tests, or a field of a machine, explained."""

    NATURAL = ("classification", "name")
    classification = models.TextField(help_text='"General", "Test Machine", or a suite')
    name = models.TextField()
    description = models.TextField()
    position = models.PositiveIntegerField(default=1000)

    objects = NaturalManager["Parameter"]()

    class Meta:
        ordering = ["position", "classification", "name"]
        constraints = [models.UniqueConstraint(fields=["classification", "name"], name="a_parameter_is_explained_once")]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str, str]:
        return (self.classification, self.name)
