"""What is measured: metrics, scenarios, machines, kernels and their results, curves and their changes.

A place is one metric in one scenario on one machine. A measurement is what a whole kernel showed there; several
results for one place are combined: all samples are pooled, and of bare means the newest counts. The direction of a
metric is kept with who set it: an operator overrides everyone, a lab overrides our table. A result is stored as the
canonical JSON of what was received (DESIGN rule 1), under the lab's own key for it.

A curve holds the measurements of one place over builds, packed into segments; its numbers are derived from them. A
change of a curve is a build where its level moved to stay.
"""

from django.db import models

from tracker.models.base import NaturalModel, OrderedJSONField
from tracker.models.reports import Report

# --- Places, kernels, measurements ---


class Machine(NaturalModel):
    """Known by the lab's name for it ("lkp-csl-2sp5"), with its hardware details as far as known."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    description = models.TextField(blank=True)
    cpus = models.PositiveIntegerField(null=True, blank=True)
    sockets = models.PositiveIntegerField(null=True, blank=True)
    cpu_model = models.TextField(blank=True)
    codename = models.TextField(blank=True)
    family = models.TextField(blank=True, help_text='"IVB Desktop": its group in the machine list of a release report')
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Scenario(NaturalModel):
    """ "will-it-scale, mode=process, test=mmap1"; the parameters keep the order in which they were received."""

    NATURAL = ("key",)
    key = models.TextField(unique=True)
    suite = models.TextField(db_index=True)
    params = OrderedJSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return ", ".join([self.suite, *(f"{name}={value}" for name, value in self.params.items())])


class Direction(models.TextChoices):
    """Whether higher or lower values are better."""

    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"


class DirectionBy(models.TextChoices):
    """Who set the direction. An operator overrides everyone; a lab says it of what our table does not know."""

    OPERATOR = "operator"
    LAB = "lab"
    TABLE = "table"  # tracker/domain/metrics.py
    NOBODY = "nobody"


class Metric(NaturalModel):
    """ "will-it-scale.per_process_ops"."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    unit = models.TextField(blank=True)
    direction = models.TextField(choices=Direction.choices, default=Direction.UNKNOWN)
    direction_by = models.TextField(choices=DirectionBy.choices, default=DirectionBy.NOBODY)
    key = models.BooleanField(
        null=True, blank=True, help_text="whether its suite is run for it; if unknown, the usual ones are"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(direction__in=Direction.values), name="metric_direction_is_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Kernel(NaturalModel):
    """ "v5.6", "v5.6-rc3", a sha of 40 digits, or a custom version. `variant` distinguishes kernels that differ by a
    parameter or a configuration: "2M", "transparent_hugepage=never".
    """

    NATURAL = ("name", "variant")
    name = models.TextField()
    variant = models.TextField(blank=True, help_text="how it was set up, if setups are compared")
    describe = models.TextField(blank=True, help_text="for a commit: its git describe")
    measured_at = models.DateTimeField(help_text="date of its first result")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "variant"], name="a_kernel_has_one_row")]

    def __str__(self) -> str:
        return f"{self.name}/{self.variant}" if self.variant else self.name

    @property
    def is_commit(self) -> bool:
        """Whether it is known by a sha, and not as a version."""
        return len(self.name) == 40 and set(self.name) <= set("0123456789abcdef")

    @property
    def label(self) -> str:
        """Its short name; for a commit, its git describe or its first digits."""
        name = self.describe[:40] or self.name[:12] if self.is_commit else self.name
        return f"{name}/{self.variant}" if self.variant else name


class MeasuredRole(models.TextChoices):
    """What a metric is for: a test's headline, another benchmark number, or a machine monitor."""

    HEADLINE = "headline"
    KPI = "kpi"
    MONITOR = "monitor"


class ReleaseResult(NaturalModel):
    """Stored as canonical JSON of what was received (DESIGN rule 1). (producer, external_id): the lab's key for it."""

    NATURAL = ("producer", "external_id")
    producer = models.TextField()
    external_id = models.TextField()
    digest = models.TextField(help_text="sha256 of the payload in canonical form")
    payload = models.TextField()
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="results")
    created_at = models.DateTimeField(help_text="by the lab's clock")
    received_at = models.DateTimeField()
    on_curves = models.BooleanField(default=False, help_text="whether its samples are on curves")

    class Meta:
        indexes = [
            models.Index(fields=["id"], condition=models.Q(on_curves=False), name="releaseresults_not_on_curves")
        ]
        constraints = [
            models.UniqueConstraint(fields=["producer", "external_id"], name="a_release_result_comes_in_once"),
        ]

    def __str__(self) -> str:
        return f"{self.producer}/{self.external_id}"


class Measurement(NaturalModel):
    """One metric of one kernel in one scenario on one machine. Several results for the same place are combined: all
    samples are pooled; of bare means, the newest counts.
    """

    NATURAL = ("kernel__name", "kernel__variant", "scenario__key", "machine__name", "metric__name", "result_id")
    kernel = models.ForeignKey(Kernel, on_delete=models.CASCADE, related_name="measurements", db_index=False)
    scenario = models.ForeignKey(Scenario, on_delete=models.PROTECT, related_name="+", db_index=False)
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="+", db_index=False)
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    result = models.ForeignKey(ReleaseResult, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    role = models.TextField(choices=MeasuredRole.choices)
    mean = models.FloatField()
    stddev = models.FloatField(null=True, blank=True, help_text="population standard deviation; null: not given")
    runs = models.PositiveIntegerField(default=1)
    samples = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kernel", "role", "scenario", "machine", "metric", "result"],
                name="a_place_is_told_once_a_result",
            ),
            models.UniqueConstraint(
                fields=["kernel", "scenario", "machine", "metric"],
                condition=models.Q(result__isnull=True),
                name="a_place_is_told_once_without_a_result",
            ),
            models.CheckConstraint(condition=models.Q(role__in=MeasuredRole.values), name="measurement_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.metric.name} of {self.kernel} on {self.machine.name}"


# --- Curves ---


class Curve(NaturalModel):
    """Its numbers are derived from its segments (tracker/services/curves.py), and its noise is empty if unknown."""

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

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metric", "scenario", "machine"], name="a_place_has_one_curve")]
        indexes = [models.Index(fields=["id"], condition=models.Q(stale=True), name="stale_curves")]

    def __str__(self) -> str:
        return f"{self.metric.name} in {self.scenario} on {self.machine.name}"


class CurveSegment(models.Model):
    """Up to some hundred points in order of time, packed (tracker/domain/curves.py)."""

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
    place = models.DateTimeField(null=True, blank=True, help_text="in the order of the mainline (bot/git/history.py)")
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
    old_level = models.FloatField(help_text="the median of the builds since the change before")
    new_level = models.FloatField(help_text="the median of the builds until the change after")
    change_pct_raw = models.FloatField(null=True, blank=True, help_text="the metric's own change; null: from zero")
    low_pct = models.FloatField(null=True, blank=True, help_text="95% bootstrap interval of change_pct_raw")
    high_pct = models.FloatField(null=True, blank=True)
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

    @property
    def is_bisectable(self) -> bool:
        """Whether commits lie between the builds. They may be variants of one kernel."""
        return revision_of(self.before) != revision_of(self.build)


def revision_of(build: str) -> str:
    """Return what git knows of a build: that of a kernel and a variant, "v6.12/2M", without the variant."""
    return build.partition("/")[0]
