"""How far a metric moves by itself, in one scenario on one machine."""

from __future__ import annotations

from django.db import models

from tracker.models.machine import Machine
from tracker.models.metric import Metric
from tracker.models.natural import NaturalManager
from tracker.models.scenario import Scenario


class NoiseHistory(models.Model):
    """The stored form of `significance.Noise`: sums over the sides of all results so far."""

    NATURAL = ("metric__name", "scenario__key", "machine__name")
    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="+", db_index=False)
    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="+", db_index=False)
    machine = models.ForeignKey(Machine, on_delete=models.CASCADE, related_name="+", db_index=False)
    degrees = models.PositiveBigIntegerField(default=0)
    squares = models.FloatField(default=0.0)

    objects = NaturalManager["NoiseHistory"]()

    class Meta:
        verbose_name_plural = "noise histories"
        constraints = [
            models.UniqueConstraint(fields=["metric", "scenario", "machine"], name="one_noise_history_a_place"),
        ]

    def __str__(self) -> str:
        return f"{self.metric.name} on {self.machine.name}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.metric.name, self.scenario.key, self.machine.name)
