"""A study: some kernels side by side over many benchmarks, for a question that somebody asked."""

from __future__ import annotations

from django.db import models

from tracker.models.kernel import Kernel
from tracker.models.natural import NaturalManager


class StudyKind(models.TextChoices):
    """What it tells: which variant wins how often, or how versions follow each other."""

    VARIANTS = "variants"
    VERSIONS = "versions"


class Study(models.Model):
    """The first of its kernels is the one that the others are compared with. Its prose stands in `Writing`."""

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
    """A column of a study. `label`: what it is called there: "2M"."""

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
