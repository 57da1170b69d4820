"""A test suite with its parameters."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager
from tracker.models.ordered import OrderedJSONField


class Scenario(models.Model):
    """ "will-it-scale, mode=process, test=mmap1"; the parameters stay in the order in which they came."""

    NATURAL = ("key",)
    key = models.TextField(unique=True)
    suite = models.TextField(db_index=True)
    params = OrderedJSONField(default=dict, blank=True)

    objects = NaturalManager["Scenario"]()

    def __str__(self) -> str:
        return ", ".join([self.suite, *(f"{name}={value}" for name, value in self.params.items())])

    def natural_key(self) -> tuple[str]:
        return (self.key,)
