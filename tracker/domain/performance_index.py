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

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracker.domain import versions
from tracker.domain.kernel_comparison import Cell
from tracker.domain.statistics import ENDS, MANY, RESAMPLES, Array

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
        """Whether it counts in a release. An -rc counts as its release, a name that is not a version as the newest."""
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
    first = versions.Version(-1, 0, 0, 0, 0)
    held = [entry for entry in entries if entry.holds_at(version)]
    held.sort(key=lambda entry: versions.parse(entry.since) or first)
    return tuple({entry.key: entry for entry in held}.values())


# --- The index ---

FAR = 200.0  # a larger ratio, as a natural logarithm, counts as out of range
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
_Links = dict[tuple[str, str], _Link]


def series(kernels: Sequence[BenchmarkMean]) -> list[IndexPoint]:
    """Return the index of every kernel, in the order given."""
    points: list[IndexPoint] = []
    links: _Links = {}
    level = np.zeros(1 + RESAMPLES)  # ln(index / 100), the last that is known
    before: _Logs = {}
    for kernel, follower in zip(kernels, (*kernels[1:], *kernels[-1:]), strict=True):
        logs, excluded = _logs(kernel, (*kernel.basket, *follower.basket))
        if links:
            point, level = _next(links, level, kernel, logs, excluded, before)
        else:
            keys = [entry.key for entry in kernel.basket]
            missing = tuple((key, excluded.get(key, "not measured")) for key in keys if key not in logs)
            value, against = (100.0, kernel.name) if logs else (None, "")
            matched = len(keys) - len(missing) if logs else 0
            point = IndexPoint(kernel.name, value, value, value, matched, len(keys), against, (), missing)
        points.append(point)
        # This kernel becomes the reference of its setups: of those without one, or of all if the basket changes
        old, new = ({(entry.key, entry.direction, entry.weight) for entry in of.basket} for of in (kernel, follower))
        for key, setups in logs.items():
            for setup, log in setups.items():
                if old != new or (key, setup) not in links:
                    links[key, setup] = _Link(kernel.name, log, log - level)
        before = logs
    return points


@dataclass(frozen=True, slots=True)
class _Move:
    """A benchmark on a kernel: ln(index / 100) if it were alone, and its distance from its reference."""

    entry: Benchmark
    level: Array
    log: float
    since: tuple[str, ...]
    setups: int


def _next(
    links: _Links, level: Array, kernel: BenchmarkMean, logs: _Logs, excluded: Mapping[str, str], before: _Logs
) -> tuple[IndexPoint, Array]:
    """Return the index of a kernel after the first one, and its level: the last one if it has no index."""
    moves: list[_Move] = []
    missing: list[tuple[str, str]] = []
    for entry in kernel.basket:
        own, reason = logs.get(entry.key, {}), excluded.get(entry.key, "")
        shared = [(log, links[entry.key, setup]) for setup, log in own.items() if (entry.key, setup) in links]
        if shared:
            alone = _mean([log - link.above for log, link in shared])
            distance = _mean([log - link.log for log, link in shared])[0]
            since = tuple(dict.fromkeys(link.name for _, link in shared))
            moves.append(_Move(entry, alone, distance, since, len(shared)))
            if reason:
                missing.append((entry.key, f"{reason} in some setups, which are left out"))
        else:
            missing.append((entry.key, reason or ("measured for the first time" if own else "not measured")))
    total, weights = len(kernel.basket), sum(move.entry.weight for move in moves)
    if not weights:
        note = "nothing in common with earlier kernels: the chain continues from the last index" if logs else ""
        return IndexPoint(kernel.name, None, None, None, 0, total, "", (), tuple(missing), note), level
    level = sum((move.entry.weight / weights * move.level for move in moves), start=np.zeros(1 + RESAMPLES))
    levels = 100 * np.exp(np.minimum(level, FAR))
    value, (low, high) = float(levels[0]), np.sort(levels[1:])[list(ENDS)].tolist()
    parts = tuple(_contribution(move, weights, logs, before, value) for move in moves)
    names = ", ".join(dict.fromkeys(name for move in moves for name in move.since))[:80]
    return IndexPoint(kernel.name, value, low, high, len(moves), total, names, parts, tuple(missing)), level


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
    return 100 * math.expm1(min(float(log), FAR))


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
            if math.exp(-FAR) < cell.mean < math.exp(FAR):
                means = _resampled(cell, f"{kernel.name} {entry.key} {setup}")
                logs.setdefault(entry.key, {})[setup] = sign * np.log(means)
            elif cell.mean == 0:
                excluded[entry.key] = "zero was measured"
            elif cell.mean < 0:
                excluded[entry.key] = "a negative number was measured"
            else:
                excluded[entry.key] = "the measured value is out of range"
    return logs, excluded


def _resampled(cell: Cell, seed: str) -> Array:
    """Return the mean, then RESAMPLES resampled means, or the same mean if there are fewer than two samples."""
    n = len(cell.samples)
    drawn = np.full(1 + RESAMPLES, cell.mean)
    if n < 2:
        return drawn
    samples = np.array(cell.samples)
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()[:16]))
    if n > MANY:
        means = cell.mean + samples.std() / math.sqrt(n) * rng.standard_normal(RESAMPLES)
    else:
        means = samples[rng.integers(0, n, (RESAMPLES, n), dtype=np.uint8)].sum(axis=1) / n
    if means.min() > 0 and math.isfinite(means.max()):
        drawn[1:] = means
    return drawn
