"""Releases and their candidates, the texts that people write, studies, and the basket of the index.

A release's cycle starts after the previous release and ends with this one; its candidates come from the tags of
followed trees. What people write is in `TextRevision`, by the page (`place`) and the name of the text there: the
newest version is shown, the others are its history, and an empty one deletes the text.

A study is a comparison of kernels under a name; its first kernel is the baseline for the others. An entry of the
basket counts from one release up to and including another. Where the entries of two successive releases differ, the
index is chained (tracker/domain/performance_index.py).
"""

from django.db import models

from tracker.models.base import NaturalModel
from tracker.models.measurements import Kernel, Metric
from tracker.models.reports import Report


class Release(NaturalModel):
    """ "v5.6". Its cycle starts after the previous release and ends with this one."""

    NATURAL = ("version",)
    version = models.TextField(unique=True)
    number = models.BigIntegerField(unique=True, help_text="sorts versions in release order")
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return self.version


class ReleaseCandidate(NaturalModel):
    """A release candidate, from the tag of a followed tree."""

    NATURAL = ("version",)
    version = models.TextField(unique=True)
    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="candidates")
    number = models.PositiveIntegerField(help_text="3 for v6.12-rc3")
    tagged_at = models.DateTimeField()

    class Meta:
        ordering = ["release", "number"]

    def __str__(self) -> str:
        return self.version


class ReportHighlight(NaturalModel):
    """Chosen by a user. `heading` replaces the one from the scenario: "disk_rr test on btrfs"."""

    NATURAL = ("release__version", "report__culprit__sha")
    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="highlights", db_index=False)
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="highlights")
    heading = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["release", "report"], name="a_report_is_detailed_once")]

    def __str__(self) -> str:
        return f"{self.release}: {self.report}"


class Suite(NaturalModel):
    """A test suite, described in one to three sentences; `position`: its place in comparisons, lowest first."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    description = models.TextField(blank=True)
    position = models.PositiveIntegerField(default=1000)

    class Meta:
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name


class Parameter(NaturalModel):
    """A test parameter or a machine field, explained."""

    NATURAL = ("classification", "name")
    classification = models.TextField(help_text='"General", "Test Machine", or a suite')
    name = models.TextField()
    description = models.TextField()
    position = models.PositiveIntegerField(default=1000)

    class Meta:
        ordering = ["position", "classification", "name"]
        constraints = [models.UniqueConstraint(fields=["classification", "name"], name="a_parameter_is_explained_once")]

    def __str__(self) -> str:
        return self.name


class TextRevision(models.Model):
    """One version of one text. The newest of a name is shown, the others are its history; an empty one deletes it.

    `place`: the page that it is on, "report v5.6", "index v5.6"; `name`: which text of that page.
    """

    place = models.TextField()
    name = models.TextField()
    text = models.TextField(blank=True)
    by = models.TextField(help_text="who wrote this version")
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["place", "name", "id"], name="texts_of_a_place")]

    def __str__(self) -> str:
        return f"{self.place}: {self.name} by {self.by}"


# --- Studies and the basket ---


class StudyKind(models.TextChoices):
    """What it shows: how often each variant wins, or how versions develop."""

    VARIANTS = "variants"
    VERSIONS = "versions"


class Study(NaturalModel):
    """The first of its kernels is the baseline for the others. Its prose is in `TextRevision`."""

    NATURAL = ("slug",)
    slug = models.SlugField(unique=True)
    title = models.TextField()
    kind = models.TextField(choices=StudyKind.choices, default=StudyKind.VARIANTS)
    made_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "studies"
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=StudyKind.values), name="study_kind_is_known"),
        ]

    def __str__(self) -> str:
        return self.title


class StudyKernel(NaturalModel):
    """A column of a study. `label`: its name there: "2M"."""

    NATURAL = ("study__slug", "position")
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="columns", db_index=False)
    position = models.PositiveIntegerField()
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="+")
    label = models.TextField(blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["study", "position"], name="a_column_has_one_kernel"),
        ]

    def __str__(self) -> str:
        return self.label or self.kernel.label


class BasketEntry(NaturalModel):
    """A metric in the scenarios with the parameters `params`, from release `since` up to and including `until`.

    Where the entries of two successive releases differ, the index is chained
    (tracker/domain/performance_index.py).
    """

    NATURAL = ("basket", "metric__name", "params", "since")
    basket = models.TextField(default="default")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    params = models.TextField(blank=True, help_text="mode=process, test=mmap1; empty: every scenario")
    weight = models.FloatField(default=1.0)
    since = models.TextField(blank=True, help_text="first release in which it counts; empty: from the beginning")
    until = models.TextField(blank=True, help_text="last release in which it counts; empty: it still counts")

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
