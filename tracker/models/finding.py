"""A finding: one metric that moved, in one scenario on one machine, between parent and culprit."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tracker.models.commit import Commit
from tracker.models.machine import Machine
from tracker.models.metric import Metric
from tracker.models.natural import NaturalManager
from tracker.models.report import Report
from tracker.models.result import BisectResult
from tracker.models.scenario import Scenario
from tracker.status import Grade


class Finding(models.Model):
    """`change_pct` is better when positive; `change_pct_raw` is the metric's own movement."""

    NATURAL = ("report__culprit__sha", "metric__name", "scenario__key", "machine__name")
    # Twenty of these rows come with a result, so each index has to earn its place: the unique one finds a report's.
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="findings", db_index=False)
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="findings", db_index=False)
    scenario = models.ForeignKey(Scenario, on_delete=models.PROTECT, related_name="findings", db_index=False)
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="findings", db_index=False)
    parent = models.ForeignKey(
        Commit, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    base = models.TextField(blank=True, help_text='the development base, as in "v5.5-rc3"')
    headline = models.BooleanField(default=False)
    verdict = models.TextField(choices=[(g.value, g.value) for g in Grade])
    change_pct = models.FloatField(null=True, blank=True)
    change_pct_raw = models.FloatField(null=True, blank=True)
    old_mean = models.FloatField(null=True, blank=True)
    old_stddev_pct = models.FloatField(null=True, blank=True)
    new_mean = models.FloatField(null=True, blank=True)
    new_stddev_pct = models.FloatField(null=True, blank=True)
    old_runs = models.PositiveIntegerField(null=True, blank=True)
    new_runs = models.PositiveIntegerField(null=True, blank=True)
    old_samples = models.JSONField(default=list, blank=True)
    new_samples = models.JSONField(default=list, blank=True)
    p_value = models.FloatField(null=True, blank=True, help_text="of Welch's t-test; null: not testable")
    low_pct = models.FloatField(null=True, blank=True, help_text="95 % bootstrap interval of change_pct_raw")
    high_pct = models.FloatField(null=True, blank=True)
    effect = models.FloatField(null=True, blank=True, help_text="the change, in times the usual noise there")
    result = models.ForeignKey(
        BisectResult, null=True, blank=True, on_delete=models.PROTECT, related_name="findings", db_index=False
    )

    objects = NaturalManager["Finding"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["report", "metric", "scenario", "machine"], name="a_finding_is_told_once_a_report"
            ),
            models.UniqueConstraint(fields=["report"], condition=Q(headline=True), name="a_report_has_one_headline"),
            models.CheckConstraint(condition=Q(verdict__in=list(Grade)), name="finding_verdict_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.metric.name} on {self.machine.name}"

    def natural_key(self) -> tuple[str, ...]:
        return (*self.report.natural_key(), self.metric.name, self.scenario.key, self.machine.name)
