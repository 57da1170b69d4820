"""What a kernel as a whole was measured to do: results of releases as handed in, and each metric of them."""

from __future__ import annotations

from django.db import models

from tracker.models.kernel import Kernel
from tracker.models.machine import Machine
from tracker.models.metric import Metric
from tracker.models.natural import NaturalManager
from tracker.models.scenario import Scenario


class MeasuredRole(models.TextChoices):
    """What a metric is for: the one that a test is judged by, others of the benchmark, and what watched the machine."""

    HEADLINE = "headline"
    KPI = "kpi"
    MONITOR = "monitor"


class ReleaseResult(models.Model):
    """Kept in canonical JSON of what was received (DESIGN rule 1). (producer, external_id) is the lab's key for it."""

    NATURAL = ("producer", "external_id")
    producer = models.TextField()
    external_id = models.TextField()
    digest = models.TextField(help_text="sha256 of the payload in canonical form")
    payload = models.TextField()
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="results")
    created_at = models.DateTimeField(help_text="by the lab's clock")
    received_at = models.DateTimeField()

    objects = NaturalManager["ReleaseResult"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["producer", "external_id"], name="a_release_result_comes_in_once"),
        ]

    def __str__(self) -> str:
        return f"{self.producer}/{self.external_id}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.producer, self.external_id)


class Measurement(models.Model):
    """One metric of one kernel in one scenario on one machine. What several results tell of one place is read together:
    samples side by side, and of bare means the newest.
    """

    NATURAL = ("kernel__name", "kernel__variant", "scenario__key", "machine__name", "metric__name", "result_id")
    kernel = models.ForeignKey(Kernel, on_delete=models.CASCADE, related_name="measurements", db_index=False)
    scenario = models.ForeignKey(Scenario, on_delete=models.PROTECT, related_name="+", db_index=False)
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="+", db_index=False)
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    result = models.ForeignKey(ReleaseResult, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    role = models.TextField(choices=MeasuredRole.choices)
    mean = models.FloatField()
    stddev = models.FloatField(null=True, blank=True, help_text="the population's; null: not told")
    runs = models.PositiveIntegerField(default=1)
    samples = models.JSONField(default=list, blank=True)

    objects = NaturalManager["Measurement"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kernel", "role", "scenario", "machine", "metric", "result"],
                name="a_place_is_told_once_a_result",
            ),
            models.UniqueConstraint(
                fields=["kernel", "scenario", "machine", "metric"],
                condition=models.Q(result__isnull=True),
                name="a_place_is_told_once_without_a_result",
            ),
            models.CheckConstraint(condition=models.Q(role__in=MeasuredRole.values), name="measurement_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.metric.name} of {self.kernel} on {self.machine.name}"

    def natural_key(self) -> tuple[str | int | None, ...]:
        place = (*self.kernel.natural_key(), self.scenario.key, self.machine.name, self.metric.name)
        return (*place, self.result.pk if self.result else None)
