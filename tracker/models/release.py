"""A kernel version with its release candidates."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager


class Release(models.Model):
    """ "v5.6". Its cycle is the time after the release before it, up to its own."""

    NATURAL = ("version",)
    version = models.TextField(unique=True)
    number = models.BigIntegerField(unique=True, help_text="orders versions as kernels are released")
    released_at = models.DateTimeField(null=True, blank=True)

    objects = NaturalManager["Release"]()

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return self.version

    def natural_key(self) -> tuple[str]:
        return (self.version,)
