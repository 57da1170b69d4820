"""A bisect result as a value: what every adapter gives, and what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.statistics.samples import SampleSummary


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """A commit as the lab tells of it; only the sha is sure to be there."""

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
    """The box of a test; what is not told is None or ""."""

    id: str
    cpus: int | None = None
    sockets: int | None = None
    cpu_model: str = ""
    codename: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MeasurementData:
    """One metric on both sides. `direction`: higher, lower or unknown. Samples are empty where only sums are told."""

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
    """One scenario on one machine, and what was measured there."""

    suite: str
    params: Mapping[str, str]
    machine: MachineInfo
    measurements: tuple[MeasurementData, ...]


@dataclass(frozen=True, slots=True)
class RecheckData:
    """The same test on another commit, later. `state`: still-bad, good, good-after-revert; `ref`: "v6.12-rc4"."""

    ref: str
    sha: str
    state: str


@dataclass(frozen=True, slots=True)
class Result:
    """A bisect result. `runs` begins with the one that was bisected; its headline is the report's.

    `payload` is what the lab handed in, in canonical JSON, as `format` has it; (producer, id) is the lab's key
    for it. `created_at` None: nothing tells when, so that it is when we got it. `doubt`: what the adapter had to
    guess, which an operator must look at. `may_be_reversed`: which side is the parent is among that, so a git
    tree may turn it round. `parent_is_told`: that it is the culprit's parent is said, and not only likely.
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
    doubt: str = ""
    may_be_reversed: bool = False
    parent_is_told: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return (self.producer, self.id)

    @property
    def headline(self) -> MeasurementData:
        """The measurement that was bisected."""
        return next(each for each in self.runs[0].measurements if each.role == "headline")
