"""The basket of the performance index: which benchmarks count, and how much."""

from __future__ import annotations

from django.db import models

from tracker.models.metric import Metric
from tracker.models.natural import NaturalManager


class BasketEntry(models.Model):
    """A metric in the scenarios that have the parameters `params`, from the release `since` to the one `until`.

    Where the entries that hold for two releases differ, the index is chained there (tracker/index/reckoning.py).
    """

    NATURAL = ("basket", "metric__name", "params", "since")
    basket = models.TextField(default="default")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    params = models.TextField(blank=True, help_text="mode=process, test=mmap1; empty: every scenario")
    weight = models.FloatField(default=1.0)
    since = models.TextField(blank=True, help_text="the first release that it counts in; empty: from the beginning")
    until = models.TextField(blank=True, help_text="the last one; empty: it counts still")

    objects = NaturalManager["BasketEntry"]()

    class Meta:
        ordering = ["basket", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["basket", "metric", "params", "since"], name="a_benchmark_has_one_weight_at_a_time"
            ),
            models.CheckConstraint(condition=models.Q(weight__gte=0), name="weights_are_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.metric.name} ({self.params})" if self.params else self.metric.name

    def natural_key(self) -> tuple[str, ...]:
        return (self.basket, self.metric.name, self.params, self.since)
