"""Studies, and the basket of the performance index."""

from __future__ import annotations

from django.db import models

from tracker.models.base import NaturalManager
from tracker.models.measurements import Kernel, Metric


class StudyKind(models.TextChoices):
    """What it shows: how often each variant wins, or how versions develop."""

    VARIANTS = "variants"
    VERSIONS = "versions"


class Study(models.Model):
    """The first of its kernels is the baseline for the others. Its prose is in `TextRevision`."""

    NATURAL = ("slug",)
    slug = models.SlugField(unique=True)
    title = models.TextField()
    kind = models.TextField(choices=StudyKind.choices, default=StudyKind.VARIANTS)
    made_at = models.DateTimeField()

    objects = NaturalManager["Study"]()

    class Meta:
        verbose_name_plural = "studies"
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=StudyKind.values), name="study_kind_is_known"),
        ]

    def __str__(self) -> str:
        return self.title

    def natural_key(self) -> tuple[str]:
        return (self.slug,)


class StudyKernel(models.Model):
    """A column of a study. `label`: its name there: "2M"."""

    NATURAL = ("study__slug", "position")
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="columns", db_index=False)
    position = models.PositiveIntegerField()
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="+")
    label = models.TextField(blank=True)

    objects = NaturalManager["StudyKernel"]()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["study", "position"], name="a_column_has_one_kernel"),
        ]

    def __str__(self) -> str:
        return self.label or self.kernel.label

    def natural_key(self) -> tuple[str, int]:
        return (self.study.slug, self.position)


class BasketEntry(models.Model):
    """A metric in the scenarios with the parameters `params`, from release `since` up to and including `until`.

    Where the entries of two successive releases differ, the index is chained
    (tracker/domain/performance_index/index_math.py).
    """

    NATURAL = ("basket", "metric__name", "params", "since")
    basket = models.TextField(default="default")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    params = models.TextField(blank=True, help_text="mode=process, test=mmap1; empty: every scenario")
    weight = models.FloatField(default=1.0)
    since = models.TextField(blank=True, help_text="first release in which it counts; empty: from the beginning")
    until = models.TextField(blank=True, help_text="last release in which it counts; empty: it still counts")

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
