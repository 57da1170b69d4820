"""The commits that have to do with a report: its culprit in other trees, its fixes, and what was reverted."""

from __future__ import annotations

from django.db import models

from tracker.happenings import Part
from tracker.models.commit import Commit
from tracker.models.natural import NaturalManager
from tracker.models.report import Report


class RelatedCommit(models.Model):
    """What git itself is sure of, by a rule of bot/upstream/matching.py. What people said stands in events."""

    NATURAL = ("report__culprit__sha", "commit__sha")
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="related")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="related_to")
    part = models.TextField(choices=[(part.value, part.value) for part in Part])
    undoes = models.TextField(blank=True, help_text="the sha of the commit that it reverts")
    tree = models.ForeignKey("Tree", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    rule = models.TextField(help_text="what told us")
    quote = models.TextField(blank=True, help_text="the words that were relied on")

    objects = NaturalManager["RelatedCommit"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "commit"], name="a_commit_has_one_part_in_a_report"),
            models.CheckConstraint(condition=models.Q(part__in=list(Part)), name="part_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.sha10}: {self.part} of {self.report}"

    def natural_key(self) -> tuple[str, ...]:
        return (*self.report.natural_key(), self.commit.sha)


class StableSeries(models.Model):
    """A stable series that carries a culprit: "in v6.6.12, fix missing"."""

    NATURAL = ("report__culprit__sha", "tree__name", "series")
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="stable")
    tree = models.ForeignKey("Tree", on_delete=models.CASCADE, related_name="+")
    series = models.TextField(help_text='"v6.6"')
    number = models.BigIntegerField(help_text="orders series as kernels are released")
    newest = models.TextField(help_text='its newest release: "v6.6.12"')
    fixed_in = models.TextField(blank=True, help_text="the first release with the fix; empty: the fix is missing")

    objects = NaturalManager["StableSeries"]()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["report", "tree", "series"], name="a_series_is_told_once_a_report"),
        ]
        indexes = [
            models.Index(fields=["report"], condition=models.Q(fixed_in=""), name="fix_missing_in_stable"),
        ]

    def __str__(self) -> str:
        return f"in {self.newest}, " + (f"fixed in {self.fixed_in}" if self.fixed_in else "fix missing")

    def natural_key(self) -> tuple[str, ...]:
        return (*self.report.natural_key(), self.tree.name, self.series)
