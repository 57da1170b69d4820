"""A file that shows why a number moved: a profile, counters of the machine, as the tool printed it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tracker.models.kernel import Kernel
from tracker.models.machine import Machine
from tracker.models.measurement import ReleaseResult
from tracker.models.report import Report
from tracker.models.scenario import Scenario


class Side(models.TextChoices):
    """Of a report: where it was taken."""

    PARENT = "parent"
    CULPRIT = "culprit"


class Evidence(models.Model):
    """Of a side of a report, or of a kernel. The text is kept as it came; what it means is read when it is shown.

    `kind` is the name of a parser of tracker/evidence/kinds, "text" where none knows it.
    """

    report = models.ForeignKey(Report, null=True, blank=True, on_delete=models.CASCADE, related_name="evidence")
    side = models.TextField(blank=True, choices=Side.choices)
    kernel = models.ForeignKey(Kernel, null=True, blank=True, on_delete=models.CASCADE, related_name="evidence")
    machine = models.ForeignKey(Machine, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    scenario = models.ForeignKey(Scenario, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    result = models.ForeignKey(ReleaseResult, null=True, blank=True, on_delete=models.CASCADE, related_name="evidence")
    name = models.TextField(help_text="of the file")
    kind = models.TextField()
    text = models.TextField()
    key = models.TextField(unique=True, help_text="of all that it belongs to and of the text, so that it comes in once")
    said_by = models.TextField(help_text="who handed it in")
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "evidence"
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(report__isnull=True) ^ Q(kernel__isnull=True), name="evidence_is_of_one_thing"
            ),
            models.CheckConstraint(
                condition=Q(report__isnull=True, side="") | Q(report__isnull=False, side__in=Side.values),
                name="evidence_of_a_report_has_a_side",
            ),
        ]

    def __str__(self) -> str:
        return self.name
