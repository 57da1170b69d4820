"""Grading of measurements: change, Welch's t-test, bootstrap interval, effect against noise, verdict. Pure.

Whole batches are graded at once: thousands of measurements take a few calls of numpy and scipy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracker.domain.events import Grade
from tracker.domain.statistics.change import better_pct, change_pct, grade_of
from tracker.domain.statistics.samples import SampleSummary

RESAMPLES = 599  # as R. Wilcox advises: the 15th and the 585th of them are exactly the ends of a 95% interval
_TAIL = 15
_MANY = 200  # from here on, resampled means are drawn from a normal distribution
_NO_INTERVAL = (None, None)
_CHUNK = 128  # measurements at a time, to bound memory

Array = NDArray[np.float64]


class Compared(Protocol):
    """One metric on both sides. Samples are empty if only means were given."""

    @property
    def old(self) -> SampleSummary: ...
    @property
    def new(self) -> SampleSummary: ...
    @property
    def old_samples(self) -> Sequence[float]: ...
    @property
    def new_samples(self) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Graded:
    """`change_pct` is the metric's own change in per cent of the parent's mean, None from zero; `better_pct` the
    same with plus for better. `low_pct` to `high_pct`: the 95% bootstrap interval of `change_pct`.
    """

    verdict: Grade
    change_pct: float | None
    better_pct: float | None
    p_value: float | None
    low_pct: float | None = None
    high_pct: float | None = None


def effect(change: float | None, noise_pct: float | None) -> float | None:
    """Return a change in multiples of the usual noise, both in per cent; None if the noise is unknown."""
    times = abs(change) / noise_pct if change is not None and noise_pct else None
    return times if times is not None and math.isfinite(times) else None


def grade(measurement: Compared, direction: str) -> Graded:
    """Grade one measurement by the direction of its metric: higher, lower or unknown."""
    return grade_all([measurement], [direction])[0]


def grade_all(measurements: Sequence[Compared], directions: Sequence[str]) -> list[Graded]:
    """Grade measurements, each by the direction of its metric. Returns them in the order given."""
    tested = welch([(each.old, each.new) for each in measurements])
    intervals = _intervals(measurements)
    graded = []
    for index, (each, direction, p) in enumerate(zip(measurements, directions, tested, strict=True)):
        old, new = each.old.mean, each.new.mean
        raw = change_pct(old, new)
        low, high = intervals.get(index, _NO_INTERVAL)
        graded.append(Graded(grade_of(old, new, p, direction), raw, better_pct(raw, direction), p, low, high))
    return graded


def welch(pairs: Sequence[tuple[SampleSummary, SampleSummary]]) -> list[float | None]:
    """Return the two-sided p of Welch's t-test (unequal variances) for each pair; None where it can't be computed.

    B. L. Welch, Biometrika 34 (1947); the same numbers as scipy.stats.ttest_ind(equal_var=False), without the
    second that importing scipy.stats takes. Without any spread, equal means give 1 and unequal ones 0.
    """
    results: list[float | None] = [None] * len(pairs)
    indices: list[int] = []
    inputs: list[tuple[float, ...]] = []
    for index, (old, new) in enumerate(pairs):
        a, b = old.error, new.error
        if a is not None and b is not None:
            indices.append(index)
            inputs.append((old.mean, a, old.n, new.mean, b, new.n))
    if not indices:
        return results
    old_mean, old_error, old_n, new_mean, new_error, new_n = np.array(inputs, dtype=float).T
    with np.errstate(all="ignore"):
        scale = np.maximum(old_error, new_error)  # squares of very small or large ones would underflow or overflow
        x, y = (old_error / scale) ** 2, (new_error / scale) ** 2
        freedom = (x + y) ** 2 / (x * x / (old_n - 1) + y * y / (new_n - 1))
        t = (new_mean / scale - old_mean / scale) / np.sqrt(x + y)
        p = 2 * _student_cdf()(freedom, -np.abs(t))
    p = np.where(scale == 0, np.where(old_mean == new_mean, 1.0, 0.0), p)
    for index, value in zip(indices, p.tolist(), strict=True):
        results[index] = value if math.isfinite(value) else None
    return results


@cache
def _student_cdf() -> Callable[[Array, Array], Array]:
    """Return scipy's stdtr. Importing it takes 0.2 to 0.7 seconds, which commands that grade nothing are spared."""
    from scipy.special import stdtr

    return stdtr


def _intervals(measurements: Sequence[Compared]) -> dict[int, tuple[float, float]]:
    """Return the intervals of the measurements with at least two samples per side and a nonzero mean, by position.

    The percentile bootstrap of B. Efron (1979) with a fixed seed: the same samples always give the same interval.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for index, each in enumerate(measurements):
        old, new = len(each.old_samples), len(each.new_samples)
        if old >= 2 and new >= 2 and each.old.mean:
            groups.setdefault((old, new), []).append(index)
    found: dict[int, tuple[float, float]] = {}
    for indices in groups.values():
        for start in range(0, len(indices), _CHUNK):
            chunk = indices[start : start + _CHUNK]
            found |= zip(chunk, _interval_of([measurements[index] for index in chunk]), strict=True)
    return {index: ends for index, ends in found.items() if all(map(math.isfinite, ends))}


def _interval_of(measurements: Sequence[Compared]) -> list[tuple[float, float]]:
    """Return the intervals of measurements with the same numbers of samples; not finite where there is none.

    Computed as distances from the parent's mean, for which float32 is precise enough; it sorts twice as fast.
    """
    means = np.array([[each.old.mean] for each in measurements])
    with np.errstate(all="ignore"):
        old = _resampled(_table([each.old_samples for each in measurements]) / means - 1, "old")
        new = _resampled(_table([each.new_samples for each in measurements]) / means - 1, "new")
        changes = (new - old) / np.abs(1 + old)
        changes.sort(axis=1)
        ends = 100 * np.sort(np.sign(means) * changes[:, (_TAIL - 1, RESAMPLES - _TAIL)].astype(float), axis=1)
    return list(map(tuple, ends.tolist()))


def _table(rows: Sequence[Sequence[float]]) -> Array:
    """Return rows of one length as an array, ten times as fast as numpy's own conversion."""
    return np.fromiter(chain.from_iterable(rows), dtype=float).reshape(len(rows), -1)


def _resampled(samples: Array, seed: str) -> NDArray[np.float32]:
    """Return the means of RESAMPLES samples drawn with replacement, one row per measurement."""
    n = samples.shape[1]
    if n <= _MANY:
        return samples.astype(np.float32) @ _weights(n, seed)
    spread = samples.std(axis=1, keepdims=True) / math.sqrt(n)
    return np.asarray(samples.mean(axis=1, keepdims=True) + spread * _draws(seed)[None, :], dtype=np.float32)


@lru_cache(maxsize=64)
def _weights(n: int, seed: str) -> NDArray[np.float32]:
    """Return how often each of n samples is drawn, over n: one column per resample."""
    drawn = np.random.default_rng([n, *seed.encode()]).multinomial(n, [1 / n] * n, size=RESAMPLES)
    return np.ascontiguousarray((drawn / n).T, dtype=np.float32)


@cache
def _draws(seed: str) -> Array:
    return np.random.default_rng([*seed.encode()]).standard_normal(RESAMPLES)


def overlap(old: Iterable[float], new: Iterable[float]) -> bool:
    """Return whether the ranges of two non-empty sides overlap."""
    old, new = list(old), list(new)
    return max(min(old), min(new)) <= min(max(old), max(new))
