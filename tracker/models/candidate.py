"""A release candidate: v6.12-rc3, and when it was tagged."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager
from tracker.models.release import Release


class Candidate(models.Model):
    """As a followed tree's tags tell."""

    NATURAL = ("version",)
    version = models.TextField(unique=True)
    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="candidates")
    number = models.PositiveIntegerField(help_text="3 of v6.12-rc3")
    tagged_at = models.DateTimeField()

    objects = NaturalManager["Candidate"]()

    class Meta:
        ordering = ["release", "number"]

    def __str__(self) -> str:
        return self.version

    def natural_key(self) -> tuple[str]:
        return (self.version,)
