"""Bisect results as handed in, the findings in them, and files of tool output.

A result is stored as canonical JSON of what was received (DESIGN rule 1), once for each key that its producer gives
it; only conclusive bisections are reported. A finding is one metric in one scenario on one machine, measured on both
sides. A report has each of them once, and one headline.

A file of tool output belongs to one side of a report, or to a kernel. Its text is stored as received, and parsed when
it is shown.
"""

from django.db import models
from django.db.models import Q

from tracker.domain.events import Grade
from tracker.models.base import NaturalModel, values
from tracker.models.git import Commit
from tracker.models.measurements import Kernel, Machine, Metric, ReleaseResult, Scenario
from tracker.models.reports import Report


class Outcome(models.TextChoices):
    """How a bisection ended; only conclusive ones are reported."""

    CONCLUSIVE = "conclusive"
    INCONCLUSIVE = "inconclusive"
    NOT_REPRODUCED = "not-reproduced"


class BisectResult(NaturalModel):
    """Stored as canonical JSON of what was received (DESIGN rule 1). (producer, external_id) is the lab's key for it.

    `held` of a result or a report: the reasons, one per line.
    """

    NATURAL = ("producer", "external_id")
    producer = models.TextField()
    external_id = models.TextField()
    digest = models.TextField(help_text="sha256 of the payload in canonical form")
    format = models.TextField(default="perf-bisect-result/1", help_text="the adapter that reads the payload")
    payload = models.TextField()
    outcome = models.TextField(choices=Outcome.choices)
    bad_sha = models.TextField(blank=True, help_text="the bad end of the bisected range, which was measured")
    measured = models.JSONField(default=list, blank=True, help_text="what was measured but did not become a finding")
    created_at = models.DateTimeField(help_text="by the lab's clock; the time of receipt if the lab gives none")
    received_at = models.DateTimeField()
    held = models.TextField(blank=True, help_text="why an operator has to check it; empty: not held")
    files = models.JSONField(default=dict, blank=True, help_text="what says how it was run, as job.yaml, by name")
    note = models.TextField(blank=True, help_text="what of it could not be used, and what it became if not a finding")
    report = models.ForeignKey(Report, null=True, blank=True, on_delete=models.PROTECT, related_name="results")
    on_curves = models.BooleanField(default=False, help_text="whether its samples are on curves")

    class Meta:
        indexes = [
            models.Index(fields=["id"], condition=Q(on_curves=False), name="bisectresults_not_on_curves"),
            models.Index(fields=["received_at"], name="results_as_received"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["producer", "external_id"], name="a_result_comes_in_once"),
            models.CheckConstraint(condition=models.Q(outcome__in=Outcome.values), name="result_outcome_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.producer}/{self.external_id}"


class Finding(NaturalModel):
    """`change_pct`: plus is better; `change_pct_raw`: the metric's own change."""

    NATURAL = ("report__culprit__sha", "metric__name", "scenario__key", "machine__name")
    # A result adds about twenty of these rows, so indexes are few: the unique one also serves lookups by report.
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
    low_pct = models.FloatField(null=True, blank=True, help_text="95% bootstrap interval of change_pct_raw")
    high_pct = models.FloatField(null=True, blank=True)
    effect = models.FloatField(null=True, blank=True, help_text="the change in multiples of the usual noise")
    noise_runs = models.PositiveIntegerField(null=True, blank=True, help_text="from how many runs that noise is known")
    result = models.ForeignKey(
        BisectResult, null=True, blank=True, on_delete=models.PROTECT, related_name="findings", db_index=False
    )

    on_curves = models.BooleanField(db_default=False, help_text="of a mailed report: whether its means are on curves")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["report", "metric", "scenario", "machine"], name="a_finding_is_told_once_a_report"
            ),
            models.UniqueConstraint(fields=["report"], condition=Q(headline=True), name="a_report_has_one_headline"),
            models.CheckConstraint(condition=Q(verdict__in=values(Grade)), name="finding_verdict_is_known"),
        ]
        indexes = [
            models.Index(fields=["metric", "scenario", "machine"], name="findings_of_a_curve"),
            models.Index(fields=["id"], condition=Q(on_curves=False, result=None), name="findings_not_on_curves"),
        ]

    @property
    def spread_pct(self) -> float | None:
        """The larger spread of the two sides, in per cent of their means."""
        spreads = [spread for spread in (self.old_stddev_pct, self.new_stddev_pct) if spread is not None]
        return max(spreads, default=None)

    @property
    def has_single_runs(self) -> bool:
        """Whether each side ran once, so that nothing is known of its noise."""
        return self.old_runs == self.new_runs == 1

    @property
    def times_noise(self) -> float | None:
        """The change in multiples of the usual noise, else of the larger spread of both sides; None if neither is
        known.
        """
        if self.effect is not None:
            return self.effect
        spread = self.spread_pct or 0.0
        return abs(self.change_pct_raw) / spread if self.change_pct_raw is not None and spread > 1e-9 else None

    def __str__(self) -> str:
        return f"{self.metric.name} on {self.machine.name}"

    @property
    def change(self) -> float | None:
        """The metric's own change in per cent, as people read it; where a source gave only one number, that."""
        return self.change_pct if self.change_pct_raw is None else self.change_pct_raw

    @property
    def usual_noise_pct(self) -> float | None:
        """The noise that `effect` counts in, in per cent; None if it is unknown."""
        return abs(self.change_pct_raw) / self.effect if self.effect and self.change_pct_raw else None


class CommitSide(models.TextChoices):
    """The side of a report on which the file was taken."""

    PARENT = "parent"
    CULPRIT = "culprit"


class ToolOutput(models.Model):
    """Belongs to one side of a report, or to a kernel. The text is stored as received and parsed when shown.

    `kind` is the name of a parser in tracker/domain/tool_output, "text" if none matches.
    """

    report = models.ForeignKey(Report, null=True, blank=True, on_delete=models.CASCADE, related_name="tool_outputs")
    side = models.TextField(blank=True, choices=CommitSide.choices)
    kernel = models.ForeignKey(Kernel, null=True, blank=True, on_delete=models.CASCADE, related_name="tool_outputs")
    machine = models.ForeignKey(Machine, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    scenario = models.ForeignKey(Scenario, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    result = models.ForeignKey(
        ReleaseResult, null=True, blank=True, on_delete=models.CASCADE, related_name="tool_outputs"
    )
    name = models.TextField(help_text="file name")
    kind = models.TextField()
    text = models.TextField()
    key = models.TextField(unique=True, help_text="digest of its owner, name and text, so that it is stored once")
    submitted_by = models.TextField(help_text="who uploaded it")
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "tool output"
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(report__isnull=True) ^ Q(kernel__isnull=True), name="evidence_is_of_one_thing"
            ),
            models.CheckConstraint(
                condition=Q(report__isnull=True, side="") | Q(report__isnull=False, side__in=CommitSide.values),
                name="evidence_of_a_report_has_a_side",
            ),
        ]

    def __str__(self) -> str:
        return self.name
