"""A bisect result as a lab handed it in."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager
from tracker.models.report import Report


class Outcome(models.TextChoices):
    """How a bisection ended; only a conclusive one is reported."""

    CONCLUSIVE = "conclusive"
    INCONCLUSIVE = "inconclusive"
    NOT_REPRODUCED = "not-reproduced"


class BisectResult(models.Model):
    """Kept in canonical JSON of what was received (DESIGN rule 1). (producer, external_id) is the lab's key for it.

    `held` of a result or a report: the reasons, a line each.
    """

    NATURAL = ("producer", "external_id")
    producer = models.TextField()
    external_id = models.TextField()
    digest = models.TextField(help_text="sha256 of the payload in canonical form")
    format = models.TextField(default="perf-bisect-result/1", help_text="the adapter that reads the payload")
    payload = models.TextField()
    outcome = models.TextField(choices=Outcome.choices)
    bad_sha = models.TextField(blank=True, help_text="the commit up to which was measured")
    measured = models.JSONField(default=list, blank=True, help_text="what was measured and became no finding")
    created_at = models.DateTimeField(help_text="by the lab's clock; when it came in, where the lab tells no time")
    received_at = models.DateTimeField()
    held = models.TextField(blank=True, help_text="why an operator has to look at it, if he has to")
    note = models.TextField(blank=True, help_text="what it became, where it is no finding: an event of another report")
    report = models.ForeignKey(Report, null=True, blank=True, on_delete=models.PROTECT, related_name="results")

    objects = NaturalManager["BisectResult"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["producer", "external_id"], name="a_result_comes_in_once"),
            models.CheckConstraint(condition=models.Q(outcome__in=Outcome.values), name="result_outcome_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.producer}/{self.external_id}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.producer, self.external_id)
