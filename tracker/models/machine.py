"""The box that a test ran on."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager


class Machine(models.Model):
    """Known by the lab's name for it ("lkp-csl-2sp5"); its parts as far as they were told."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    description = models.TextField(blank=True)
    cpus = models.PositiveIntegerField(null=True, blank=True)
    sockets = models.PositiveIntegerField(null=True, blank=True)
    cpu_model = models.TextField(blank=True)
    codename = models.TextField(blank=True)
    family = models.TextField(blank=True, help_text='"IVB Desktop": its place in the list of a release report')
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True)

    objects = NaturalManager["Machine"]()

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)
