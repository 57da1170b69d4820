"""The performance index: a weighted geometric mean over a basket of benchmarks, release by release. Pure.

    index = 100 · exp(Σ w·L / Σ w),  L = the mean of dir·ln(x / x₀) over a benchmark's setups (scenario and machine)

over the matched basket: the benchmarks, and of them the setups, that were measured on both kernels; dir is -1 where
lower is better. The basket says which benchmarks count, with what weight, from which release to which. The first
kernel is 100 and the reference x₀ of its setups. A setup that is first measured later has that kernel as its
reference, at the index that the kernel has without it; a setup that is missing for a while keeps its reference. Where
the basket changes after a kernel, that kernel becomes the reference of all its setups. So neither a new test nor a
new basket changes the index by itself. A kernel without a setup in common with earlier kernels has no index; the
chain continues from it at the last index, and its note says so. The interval is the bootstrap's (B. Efron, 1979): all
samples are resampled 599 times, and the whole chain is computed from each resample.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.domain import versions
from tracker.domain.kernel_comparison import Cell

# --- The basket ---


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: a metric in the scenarios with these parameters, or in all its scenarios without any."""

    metric: str
    params: tuple[tuple[str, str], ...]
    direction: str
    weight: float = 1.0
    since: str = ""
    until: str = ""

    @property
    def key(self) -> str:
        """Identifies the benchmark, whatever its weight."""
        return f"{self.metric} ({params_text(self.params)})" if self.params else self.metric

    def takes(self, metric: str, params: Mapping[str, str]) -> bool:
        """Return whether a measurement is of this benchmark."""
        return metric == self.metric and all(params.get(name) == value for name, value in self.params)

    def holds_at(self, version: str) -> bool:
        """Whether it counts in a release. An -rc counts as its release, a name that is no version as the newest."""
        parsed = versions.parse(version)
        since, until = versions.parse(self.since), versions.parse(self.until)
        if parsed is None:
            return until is None
        return (since is None or parsed.cycle == since.cycle or parsed >= since) and (
            until is None or parsed.cycle == until.cycle or parsed <= until
        )


def read_params(text: str) -> tuple[tuple[str, str], ...]:
    """Parse parameters as people write them, sorted by name: "mode=process, test=mmap1"; a comma in a value is doubled.
    Raises ValueError, which says what was expected.
    """
    pairs = []
    parts = (item.replace("\0", ",").strip() for item in text.replace("\0", "").replace(",,", "\0").split(","))
    for part in filter(None, parts):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"expected comma-separated name=value pairs, found {part[:40]!r}")
        pairs.append((name.strip(), value.strip()))
    return tuple(sorted(pairs))


def params_text(params: Sequence[tuple[str, str]]) -> str:
    """Return parameters as text."""
    return ", ".join(f"{name}={value}".replace(",", ",,") for name, value in params)


def at(entries: Sequence[Benchmark], version: str) -> tuple[Benchmark, ...]:
    """Return the basket of a release: of the entries for one benchmark, the one that starts last counts."""
    held = sorted((entry for entry in entries if entry.holds_at(version)), key=lambda entry: _begins(entry.since))
    return tuple({entry.key: entry for entry in held}.values())


def _begins(since: str) -> tuple[bool, versions.Version]:
    parsed = versions.parse(since)
    return parsed is not None, parsed or versions.Version(0, 0, 0, 0, 0)


# --- The index ---

RESAMPLES = 599
_TAIL = 15  # so that the 15th and the 585th are the ends of a 95% interval (tracker/domain/statistics.py)
_MANY = 200  # from here on, means of samples are drawn from a normal distribution
_FAR = 200.0  # a larger ratio, as a natural logarithm, counts as out of range
Array = NDArray[np.float64]
CellsBySetup = Mapping[str, Cell]  # by a key of scenario and machine


@dataclass(frozen=True, slots=True)
class BenchmarkMean:
    """A kernel: its basket, and what was measured of each benchmark, by its key."""

    name: str
    basket: tuple[Benchmark, ...]
    readings: Mapping[str, CellsBySetup]


@dataclass(frozen=True, slots=True)
class Contribution:
    """A benchmark's part in an index. `pct`: its performance against its reference kernel (`since`), plus is better;
    `share_pct`: its weight; `points`: by how many points it moves the index away from 100; `step_pct`: its performance
    against the previous kernel, None if either lacks it; `setups`: the number of setups that it was averaged over.
    """

    key: str
    pct: float
    since: str
    share_pct: float
    points: float
    step_pct: float | None
    setups: int


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """The index of one kernel; `value` None if nothing can be compared. `matched` of `total` benchmarks are in it,
    `missing` says why others are not. `against`: their reference kernels; `note`: a remark for the reader.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    matched: int
    total: int
    against: str
    contributions: tuple[Contribution, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Link:
    """The reference of a setup: the kernel, its measured value, and the difference of that to its index, as logarithms;
    the actual one first, then one for each resample.
    """

    name: str
    log: Array
    above: Array


_Logs = Mapping[str, Mapping[str, Array]]


class _Chain:
    """The references of all setups, and the last known index."""

    def __init__(self) -> None:
        self.links: dict[tuple[str, str], _Link] = {}
        self.level = np.zeros(1 + RESAMPLES)  # ln(index / 100)

    def add_references(self, kernel: str, logs: _Logs, *, anew: bool) -> None:
        """Make this kernel the reference of its setups: of all of them (`anew`), or of those without one."""
        for key, setups in logs.items():
            for setup, log in setups.items():
                if anew or (key, setup) not in self.links:
                    self.links[key, setup] = _Link(kernel, log, log - self.level)


def series(kernels: Sequence[BenchmarkMean]) -> list[IndexPoint]:
    """Return the index of every kernel, in the order given."""
    points: list[IndexPoint] = []
    chain = _Chain()
    before: _Logs = {}
    for index, kernel in enumerate(kernels):
        follower = kernels[index + 1] if index + 1 < len(kernels) else kernel
        logs, excluded = _logs(kernel, (*kernel.basket, *follower.basket))
        points.append(_next(chain, kernel, logs, excluded, before) if chain.links else _first(kernel, logs, excluded))
        changes = {_what_counts(entry) for entry in follower.basket} != {_what_counts(entry) for entry in kernel.basket}
        chain.add_references(kernel.name, logs, anew=changes)
        before = logs
    return points


def _what_counts(entry: Benchmark) -> tuple[str, str, float]:
    return entry.key, entry.direction, entry.weight


def _first(kernel: BenchmarkMean, logs: _Logs, excluded: Mapping[str, str]) -> IndexPoint:
    missing = tuple(
        (entry.key, excluded.get(entry.key, "not measured")) for entry in kernel.basket if entry.key not in logs
    )
    total = len(kernel.basket)
    matched = total - len(missing)
    if not logs:
        return IndexPoint(kernel.name, None, None, None, 0, total, "", (), missing)
    return IndexPoint(kernel.name, 100.0, 100.0, 100.0, matched, total, kernel.name, (), missing)


@dataclass(frozen=True, slots=True)
class _Move:
    """A benchmark on a kernel: ln(index / 100) if it were alone, and its distance from its reference."""

    entry: Benchmark
    level: Array
    log: float
    since: tuple[str, ...]
    setups: int


def _next(chain: _Chain, kernel: BenchmarkMean, logs: _Logs, excluded: Mapping[str, str], before: _Logs) -> IndexPoint:
    """Return the index of a kernel after the first one."""
    moves: list[_Move] = []
    missing: list[tuple[str, str]] = []
    for entry in kernel.basket:
        own = logs.get(entry.key, {})
        shared = [
            (log, chain.links[entry.key, setup]) for setup, log in own.items() if (entry.key, setup) in chain.links
        ]
        if shared:
            level = _mean([log - link.above for log, link in shared])
            distance = _mean([log - link.log for log, link in shared])[0]
            moves.append(
                _Move(entry, level, distance, tuple(dict.fromkeys(link.name for _, link in shared)), len(shared))
            )
            if entry.key in excluded:
                missing.append((entry.key, f"{excluded[entry.key]} in some setups, which are left out"))
        else:
            missing.append(
                (entry.key, excluded.get(entry.key) or ("measured for the first time" if own else "not measured"))
            )
    total, weights = len(kernel.basket), sum(move.entry.weight for move in moves)
    if not weights:
        note = "nothing in common with earlier kernels: the chain continues from the last index" if logs else ""
        return IndexPoint(kernel.name, None, None, None, 0, total, "", (), tuple(missing), note)
    chain.level = sum((move.entry.weight / weights * move.level for move in moves), start=np.zeros(1 + RESAMPLES))
    levels = 100 * np.exp(np.minimum(chain.level, _FAR))
    parts = tuple(_contribution(move, weights, logs, before, float(levels[0])) for move in moves)
    low, high = np.sort(levels[1:])[[_TAIL - 1, RESAMPLES - _TAIL]].tolist()
    since = ", ".join(dict.fromkeys(name for move in moves for name in move.since))[:80]
    return IndexPoint(kernel.name, float(levels[0]), low, high, len(moves), total, since, parts, tuple(missing))


def _mean(arrays: Sequence[Array]) -> Array:
    return np.asarray(np.mean(np.stack(arrays), axis=0))


def _contribution(move: _Move, weights: float, logs: _Logs, before: _Logs, level: float) -> Contribution:
    share = move.entry.weight / weights
    own, earlier = (by_key.get(move.entry.key, {}) for by_key in (logs, before))
    shared = [setup for setup in own if setup in earlier]
    step = float(_mean([own[setup] - earlier[setup] for setup in shared])[0]) if shared else None
    away = math.log(level / 100) if level else 0.0
    part = (level - 100) * share * float(move.level[0]) / away if away else 0.0
    since = ", ".join(move.since)[:80]
    step_pct = None if step is None else _percent(step)
    return Contribution(move.entry.key, _percent(move.log), since, 100 * share, part, step_pct, move.setups)


def _percent(log: float) -> float:
    return 100 * math.expm1(min(float(log), _FAR))


def _logs(kernel: BenchmarkMean, basket: Sequence[Benchmark]) -> tuple[_Logs, dict[str, str]]:
    """Return dir·ln(x) by benchmark and setup, actual and resampled; and what is left out, with the reason."""
    logs: dict[str, dict[str, Array]] = {}
    excluded: dict[str, str] = {}
    for entry in {benchmark.key: benchmark for benchmark in basket}.values():
        sign = {"higher": 1.0, "lower": -1.0}.get(entry.direction)
        if sign is None:
            excluded[entry.key] = "direction unknown"
            continue
        for setup, cell in kernel.readings.get(entry.key, {}).items():
            if not (math.exp(-_FAR) < cell.mean < math.exp(_FAR)):
                excluded[entry.key] = _exclusion_reason(cell.mean)
                continue
            means = _resampled(cell, f"{kernel.name} {entry.key} {setup}")
            logs.setdefault(entry.key, {})[setup] = sign * np.log(means)
    return logs, excluded


def _exclusion_reason(mean: float) -> str:
    if mean == 0:
        return "zero was measured"
    return "a negative number was measured" if mean < 0 else "the measured value is out of range"


def _resampled(cell: Cell, seed: str) -> Array:
    """Return the mean, then RESAMPLES resampled means, or the same mean if there are fewer than two samples."""
    n = len(cell.samples)
    drawn = np.full(1 + RESAMPLES, cell.mean)
    if n < 2:
        return drawn
    samples = np.array(cell.samples)
    rng = np.random.default_rng(list(hashlib.sha256(seed.encode("utf-8", "replace")).digest()))
    if n > _MANY:
        means = cell.mean + samples.std() / math.sqrt(n) * rng.standard_normal(RESAMPLES)
    else:
        means = samples[rng.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    if np.all(means > 0) and np.all(np.isfinite(means)):
        drawn[1:] = means
    return drawn
