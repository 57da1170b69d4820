"""A bisect result as a value: what every adapter returns and what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from tracker.domain.statistics.samples import SampleSummary


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """A commit as the lab describes it; only the sha is always given."""

    sha: str
    title: str = ""
    author_name: str = ""
    author_email: str = ""
    date: datetime | None = None
    describe: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    is_merge: bool = False


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """The machine of a test; unknown values are None or ""."""

    id: str
    cpus: int | None = None
    sockets: int | None = None
    cpu_model: str = ""
    codename: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MeasurementData:
    """One metric on both sides. `direction`: higher, lower or unknown. Samples are empty if only a summary is given."""

    metric: str
    unit: str
    direction: str
    role: str
    old: SampleSummary
    new: SampleSummary
    old_samples: tuple[float, ...] = ()
    new_samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TestRun:
    """One scenario on one machine, with its measurements."""

    suite: str
    params: Mapping[str, str]
    machine: MachineInfo
    measurements: tuple[MeasurementData, ...]


@dataclass(frozen=True, slots=True)
class RecheckData:
    """The same test on a later commit. `state`: still-bad, good, good-after-revert; `ref`: "v6.12-rc4"."""

    ref: str
    sha: str
    state: str


@dataclass(frozen=True, slots=True)
class Result:
    """A bisect result. The first of `runs` was bisected; its headline is the report's.

    `payload` is the lab's data as canonical JSON, in the format named by `format`; (producer, id) is the lab's key.
    `created_at` is None if no date is given; then the time of import counts. `uncertainty`: what the adapter had
    to guess, for an operator to check. `may_be_reversed`: it guessed which side is the parent, so a git tree may swap
    them. `parent_is_stated`: the input says that `parent` is the culprit's parent; otherwise that is only likely.
    """

    producer: str
    id: str
    created_at: datetime | None
    outcome: str
    tree: str
    branch: str
    tree_url: str
    good: CommitInfo
    bad: CommitInfo
    culprit: CommitInfo | None
    parent: CommitInfo | None
    patch_message_id: str
    runs: tuple[TestRun, ...]
    payload: str
    format: str
    rechecks: tuple[RecheckData, ...] = ()
    uncertainty: str = ""
    may_be_reversed: bool = False
    parent_is_stated: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return (self.producer, self.id)

    @property
    def headline(self) -> MeasurementData:
        """The measurement that was bisected."""
        return next(each for each in self.runs[0].measurements if each.role == "headline")

    def reversed(self) -> Result:
        """Return the result with its sides swapped: culprit and parent, good and bad, and what was measured of both."""
        runs = tuple(replace(run, measurements=tuple(map(_reversed, run.measurements))) for run in self.runs)
        return replace(self, good=self.bad, bad=self.good, culprit=self.parent, parent=self.culprit, runs=runs)


def _reversed(each: MeasurementData) -> MeasurementData:
    return replace(each, old=each.new, new=each.old, old_samples=each.new_samples, new_samples=each.old_samples)
