"""Curves: the measurements of one metric of one scenario on one machine over builds, packed, and their changes."""

from __future__ import annotations

from django.db import models

from tracker.models.base import NaturalManager
from tracker.models.measurements import Machine, Metric, Scenario
from tracker.models.reports import Report


class Curve(models.Model):
    """Its numbers are derived from its segments (tracker/services/curves), and its noise is empty if unknown."""

    NATURAL = ("metric__name", "scenario__key", "machine__name")
    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="curves", db_index=False)
    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="+", db_index=False)
    machine = models.ForeignKey(Machine, on_delete=models.CASCADE, related_name="curves")
    points = models.PositiveIntegerField(default=0)
    samples = models.PositiveBigIntegerField(default=0)
    first_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    noise = models.JSONField(default=dict, blank=True, help_text="run_pct, build_pct, modes_pct, runs, builds")
    stale = models.BooleanField(default=True, help_text="whether points were added since it was looked at")
    outline = models.TextField(blank=True, help_text="heights of its last builds from 0 to 100, for small charts")

    objects = NaturalManager["Curve"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metric", "scenario", "machine"], name="a_place_has_one_curve")]
        indexes = [models.Index(fields=["id"], condition=models.Q(stale=True), name="stale_curves")]

    def __str__(self) -> str:
        return f"{self.metric.name} in {self.scenario} on {self.machine.name}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.metric.name, self.scenario.key, self.machine.name)


class CurveSegment(models.Model):
    """Up to some hundred points in order of time, packed (tracker/domain/curves/points.py)."""

    curve = models.ForeignKey(Curve, on_delete=models.CASCADE, related_name="segments", db_index=False)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    points = models.PositiveIntegerField()
    packed = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["curve", "last_at"], name="segments_of_a_curve_by_time")]

    def __str__(self) -> str:
        return f"{self.points} points of curve {self.curve_id}"


class CurveBuild(models.Model):
    """A commit or version that stands on curves, and its place in the order of the mainline, once that is known."""

    name = models.TextField(unique=True, help_text="a full sha, or a version")
    first_at = models.DateTimeField(help_text="where its points stood as they came, first to last")
    last_at = models.DateTimeField()
    place = models.DateTimeField(null=True, blank=True, help_text="in the order of the mainline (bot/git/order.py)")
    moved = models.BooleanField(default=False, help_text="whether its points stand at its place")
    sought_at = models.DateTimeField(null=True, blank=True, help_text="when the mainline was last found without it")

    class Meta:
        indexes = [models.Index(fields=["last_at"], condition=models.Q(moved=False), name="builds_without_a_place")]

    def __str__(self) -> str:
        return self.name


class CurveChange(models.Model):
    """A change that was found in a curve: its level moved between two builds, to stay."""

    curve = models.ForeignKey(Curve, on_delete=models.CASCADE, related_name="changes", db_index=False)
    at = models.DateTimeField(db_index=True, help_text="of the first build on the new level")
    before = models.TextField(help_text="the last build on the old level")
    build = models.TextField(help_text="the first build on the new level")
    old_level = models.FloatField()
    new_level = models.FloatField()
    change_pct_raw = models.FloatField(null=True, blank=True, help_text="the metric's own change; null: from zero")
    noise_pct = models.FloatField(null=True, blank=True, help_text="the spread of the builds around both levels")
    is_regression = models.BooleanField(null=True, help_text="null: the direction is unknown")
    found_at = models.DateTimeField()
    report = models.ForeignKey(
        Report, null=True, blank=True, on_delete=models.SET_NULL, related_name="curve_changes", help_text="that says it"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["curve", "build"], name="a_change_is_found_once")]

    def __str__(self) -> str:
        change = "" if self.change_pct_raw is None else f"{self.change_pct_raw:+.1f}% "
        return f"{change}at {self.build[:12]}"
