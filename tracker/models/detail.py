"""A report that a release report tells of in a section of its own."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager
from tracker.models.release import Release
from tracker.models.report import Report


class Detail(models.Model):
    """Chosen by a person. `heading`: "disk_rr test on btrfs", where the scenario alone would make a poor one."""

    NATURAL = ("release__version", "report__culprit__sha")
    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="details", db_index=False)
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="details")
    heading = models.TextField(blank=True)

    objects = NaturalManager["Detail"]()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["release", "report"], name="a_report_is_detailed_once")]

    def __str__(self) -> str:
        return f"{self.release}: {self.report}"

    def natural_key(self) -> tuple[str, ...]:
        return (self.release.version, *self.report.natural_key())
