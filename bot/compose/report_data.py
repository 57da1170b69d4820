"""The content of a report mail: a report with its findings, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.compose.recipients import CommitPeople
from bot.compose.threading import ThreadPosition
from bot.git.maintainers import Responsible
from bot.mail.addresses import Address
from tracker.domain.events import Grade, Verdict

PROFILE = "perf-profile."


@dataclass(frozen=True, slots=True)
class FindingData:
    """One metric that changed. `change_pct`: the metric's own change, None from zero; `low_pct` to `high_pct`: its
    95% confidence interval. `noise_pct`: its usual noise here, known from `noise_runs`. `overlap`: the samples of the
    sides overlap.
    """

    metric: str
    unit: str
    direction: str
    verdict: Grade
    change_pct: float | None
    old_mean: float
    old_stddev_pct: float | None
    old_runs: int | None
    new_mean: float
    new_stddev_pct: float | None
    new_runs: int | None
    suite: str
    params: Mapping[str, str]
    machine: str
    machine_text: str
    p_value: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None
    noise_pct: float | None = None
    noise_runs: int | None = None
    overlap: bool = False

    @property
    def table_key(self) -> tuple[str, str, str]:
        """Scenario and machine; the findings of one table share it."""
        return (self.suite, repr(sorted(self.params.items())), self.machine)

    @property
    def where(self) -> str:
        """ "vm-scan on lab7-m1"."""
        return f"{self.suite} on {self.machine}"

    @property
    def spreads(self) -> tuple[float, ...]:
        """The known spreads of both sides, in per cent of the mean."""
        return tuple(each for each in (self.old_stddev_pct, self.new_stddev_pct) if each is not None)

    @property
    def is_profile(self) -> bool:
        return self.metric.startswith(PROFILE)

    @property
    def in_points(self) -> bool:
        """Whether LKP tables show its change in percentage points: profile shares, and metrics whose name ends in %."""
        return self.is_profile or self.metric.endswith("%")

    @property
    def moved(self) -> float | None:
        """The change as LKP tables show it: in points for a share, else in per cent; None from zero."""
        return self.new_mean - self.old_mean if self.in_points else self.change_pct

    @property
    def is_graded(self) -> bool:
        """Whether it is a significant change for better or worse."""
        return self.verdict in (Grade.REGRESSION, Grade.IMPROVEMENT)


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """How the kernels were built and booted; "" if unknown."""

    kconfig: str = ""
    config_url: str = ""
    compiler: str = ""
    rootfs: str = ""
    cmdline: str = ""


@dataclass(frozen=True, slots=True)
class RecheckInfo:
    """A recheck on another commit: "v9.1-rc4", and still-bad, good or good-after-revert."""

    ref: str
    state: str


@dataclass(frozen=True, slots=True)
class ReportData:
    """A report as the mail presents it. `findings`: the headline first; `raw`: the URL of the raw data.

    `responsible`: whom MAINTAINERS lists for the changed files. `patch`: the threading of a reply to the patch.
    `history`: how long the headline was stable before, and the URL of its curve.
    """

    tag: str
    sha: str
    title: str
    author: Address
    trailers: tuple[tuple[str, str], ...]
    tree: str
    tree_url: str
    branch: str
    parent_sha: str
    parent_title: str
    base: str
    good: str
    bad: str
    bisect_steps: int
    verdict: Verdict
    findings: tuple[FindingData, ...]
    build: BuildInfo = field(default_factory=BuildInfo)
    authored_at: datetime | None = None
    tree_role: str = ""
    patch: ThreadPosition = field(default_factory=ThreadPosition)
    responsible: tuple[Responsible, ...] = ()
    rechecks: tuple[RecheckInfo, ...] = ()
    test_text: str = ""
    test_url: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()
    raw: str = ""
    history: str = ""

    @property
    def headline(self) -> FindingData:
        return self.findings[0]

    @property
    def commit(self) -> CommitPeople:
        """The people of the culprit from whom the recipients are taken."""
        return CommitPeople(self.author, self.trailers, self.responsible, self.tree, self.tree_role)


def worst(findings: Iterable[FindingData]) -> list[FindingData]:
    """Return the findings with regressions first, then by size of the change; a change from zero is the largest."""
    return sorted(
        findings,
        key=lambda each: (
            each.verdict is not Grade.REGRESSION,
            -abs(each.change_pct) if each.change_pct is not None else float("-inf"),
        ),
    )
