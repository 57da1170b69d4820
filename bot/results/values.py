"""Results as values: what every adapter returns and what is stored, and why an input is rejected.

A bisect result compares two sides and may name a culprit; a kernel result has the measurements of one kernel, without
another one to compare with. Both keep the lab's data as canonical JSON, and (producer, id) is the lab's key. A
rejection says where the input is wrong, what was expected and what was found. Whatever an adapter trips over rejects
this input, and none after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

from tracker.domain.statistics import SampleSummary

# --- Rejected input ---

Parsed = TypeVar("Parsed")


class RejectedInput(Exception):
    """An input was rejected. `where`: a file with a line or a JSON pointer; `why`: one sentence.

    `faults`: every fault as (JSON pointer, why); by default the one fault, if `where` ends in a pointer.
    """

    def __init__(self, where: str, why: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(where, why)
        self.where = _one_line(where)
        self.why = _one_line(why)
        _, comma, pointer = where.rpartition(", /")
        self.faults = tuple(faults) or (((f"/{pointer}", why),) if comma else ())

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why

    def at(self, where: str) -> RejectedInput:
        """Return the same error with `where` set, unless it has one already."""
        return self if self.where else type(self)(where, self.why, self.faults)


def _one_line(text: str) -> str:
    """Return untrusted text as one line of bounded length, with control characters escaped."""
    text = text if len(text) <= 600 else f"{text[:400]} … {text[-150:]}"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class Conflict(RejectedInput):
    """A result whose key is known already, with different content."""


# What our own code may trip over
BUGS = (ValueError, ArithmeticError, RecursionError, RuntimeError, TypeError, LookupError)


def bug(where: str, error: Exception) -> RejectedInput:
    return RejectedInput(where, f"a bug, please report it: {str(error) or type(error).__name__}")


def checked_parse(parse: Callable[[], Parsed], where: str) -> Parsed:
    """Return what an adapter makes of an input. Whatever it trips over rejects this input, and none after it."""
    try:
        return parse()
    except BUGS as error:
        raise bug(where, error) from error


# --- Bisect results ---


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
class _Measurement:
    """One metric. `direction`: higher, lower or unknown. Samples are empty if only a summary is given."""

    metric: str
    unit: str
    direction: str
    role: str


@dataclass(frozen=True, slots=True)
class MeasurementData(_Measurement):
    """One metric on both sides."""

    old: SampleSummary
    new: SampleSummary
    old_samples: tuple[float, ...] = ()
    new_samples: tuple[float, ...] = ()

    def reversed(self) -> MeasurementData:
        return replace(self, old=self.new, new=self.old, old_samples=self.new_samples, new_samples=self.old_samples)


@dataclass(frozen=True, slots=True)
class KernelMeasurement(_Measurement):
    """One metric of one kernel."""

    side: SampleSummary
    samples: tuple[float, ...]


Measured = TypeVar("Measured", MeasurementData, KernelMeasurement)


@dataclass(frozen=True, slots=True)
class TestRun(Generic[Measured]):
    """One scenario on one machine, with its measurements."""

    suite: str
    params: Mapping[str, str]
    machine: MachineInfo
    measurements: tuple[Measured, ...]


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
    `doubt`: what an operator must check whatever a tree says, as different tools on the two sides. `note`: what of the
    input could not be used, a sentence for each. `files`: what says how it was run, as job.yaml, by name, and
    `parent_files` of the parent. `id_is_digest`: the id is made from all that counts, so that what is known by it is
    the same.
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
    runs: tuple[TestRun[MeasurementData], ...]
    payload: str
    format: str
    rechecks: tuple[RecheckData, ...] = ()
    uncertainty: str = ""
    may_be_reversed: bool = False
    parent_is_stated: bool = True
    doubt: str = ""
    note: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    parent_files: Mapping[str, str] = field(default_factory=dict)
    id_is_digest: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return (self.producer, self.id)

    @property
    def headline(self) -> MeasurementData:
        """The measurement that was bisected."""
        return next(measurement for measurement in self.runs[0].measurements if measurement.role == "headline")

    def reversed(self) -> Result:
        """Return the result with its sides swapped: culprit and parent, good and bad, and what was measured of both."""
        runs = tuple(
            replace(run, measurements=tuple(measurement.reversed() for measurement in run.measurements))
            for run in self.runs
        )
        turned = replace(self, good=self.bad, bad=self.good, culprit=self.parent, parent=self.culprit, runs=runs)
        return replace(turned, files=self.parent_files, parent_files=self.files)


# --- Kernel results ---


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """A kernel. `name`: "v5.6", or a sha of 40 digits; `variant`: how it was configured."""

    name: str
    variant: str = ""
    describe: str = ""
    committed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ToolOutputInfo:
    """A file written by a tool while the first test ran."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelResult:
    """A lab's result for one kernel. `payload` is its canonical JSON; (producer, id) is its key.

    `id_is_digest`: the id is made from all but the time of receipt, so that what is known by it is the same. `files`:
    the marks of the benchmark files that it was made from; `files_known`: how many more were stored before.
    """

    producer: str
    id: str
    created_at: datetime
    kernel: KernelInfo
    tests: tuple[TestRun[KernelMeasurement], ...]
    evidence: tuple[ToolOutputInfo, ...]
    payload: str
    files: frozenset[str] = frozenset()
    id_is_digest: bool = False
    files_known: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return (self.producer, self.id)
