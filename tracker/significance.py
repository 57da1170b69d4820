"""Two sides to a grade: change, Welch's t-test, bootstrap interval, effect against noise, verdict. Pure.

Whole batches are graded at once: thousands of measurements cost a few calls of numpy and scipy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from tracker.movement import better_pct, change_pct, grade_of
from tracker.samples import Side
from tracker.status import Grade

RESAMPLES = 1000
_MANY = 200  # from here on resampled means are normal for all purposes, and drawn so
_CHUNK = 128  # measurements at a time, so that the memory stays flat

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric on both sides, as it is graded. Samples are empty where only means were told."""

    old: Side
    new: Side
    direction: str
    old_samples: Sequence[float] = ()
    new_samples: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Graded:
    """`change_pct` is the metric's own movement in per cent of the parent's mean, None from zero; `better_pct` the
    same with plus for better. `low_pct` to `high_pct`: the 95 % bootstrap interval of `change_pct`.
    """

    verdict: Grade
    change_pct: float | None
    better_pct: float | None
    p_value: float | None
    low_pct: float | None = None
    high_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a metric moves from run to run by itself: pooled over the sides of earlier results.

    `squares` sums (n - 1) · (spread ÷ mean)², `degrees` sums n - 1.
    """

    degrees: int = 0
    squares: float = 0.0

    @property
    def pct(self) -> float | None:
        """The usual spread in per cent of the mean; None without a history, or where nothing ever moved."""
        return 100 * math.sqrt(self.squares / self.degrees) if self.degrees and self.squares else None

    def plus(self, told: Side) -> Noise:
        """The history with one side more; a side that tells no spread adds nothing."""
        variance = told.variance
        if variance is None or not told.mean:
            return self
        squares = self.squares + (told.n - 1) * (variance / told.mean / told.mean)
        return Noise(self.degrees + told.n - 1, squares) if math.isfinite(squares) else self


def effect(change: float | None, noise: Noise) -> float | None:
    """How many times the usual noise a change is; None without a history."""
    return None if change is None or noise.pct is None else abs(change) / noise.pct


def grade(told: Compared) -> Graded:
    """One measurement, graded."""
    return next(iter(grade_all([told])))


def grade_all(told: Sequence[Compared]) -> list[Graded]:
    """Every measurement, graded, in the order given."""
    tested = welch([(each.old, each.new) for each in told])
    graded = [_graded(each, p) for each, p in zip(told, tested, strict=True)]
    for place, low, high in _intervals(told):
        graded[place] = replace(graded[place], low_pct=low, high_pct=high)
    return graded


def _graded(told: Compared, p: float | None) -> Graded:
    raw = change_pct(told.old.mean, told.new.mean)
    return Graded(grade_of(told.old.mean, told.new.mean, p, told.direction), raw, better_pct(raw, told.direction), p)


def welch(pairs: Sequence[tuple[Side, Side]]) -> list[float | None]:
    """The two-sided p of Welch's t-test (unequal variances) for each pair; None where it can't be made.

    B. L. Welch, Biometrika 34 (1947); the same numbers as scipy.stats.ttest_ind(equal_var=False), without the
    second that importing scipy.stats takes. Without any spread, equal means give 1 and unequal ones 0.
    """
    results: list[float | None] = [None] * len(pairs)
    places = [n for n, (old, new) in enumerate(pairs) if old.variance is not None and new.variance is not None]
    if not places:
        return results
    told = np.array(
        [(o.mean, o.variance or 0.0, o.n, w.mean, w.variance or 0.0, w.n) for o, w in (pairs[n] for n in places)]
    )
    old_mean, old_variance, old_n, new_mean, new_variance, new_n = told.T
    with np.errstate(all="ignore"):
        a, b = old_variance / old_n, new_variance / new_n
        scale = np.maximum(a, b)  # squares of very small or large spreads leave the range of a float
        x, y = a / scale, b / scale
        freedom = (x + y) ** 2 / (x * x / (old_n - 1) + y * y / (new_n - 1))
        t = (new_mean - old_mean) / np.sqrt(a + b)
        p = 2 * stdtr(freedom, -np.abs(t))
    still = (a + b) == 0
    p = np.where(still, np.where(old_mean == new_mean, 1.0, 0.0), p)
    for place, value in zip(places, p.tolist(), strict=True):
        results[place] = value if math.isfinite(value) else None
    return results


def _intervals(told: Sequence[Compared]) -> Iterator[tuple[int, float, float]]:
    """For each measurement with two samples or more a side, and a mean that is not zero: where, low, high.

    The percentile bootstrap of B. Efron (1979) with a fixed seed: the same samples always give the same interval.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for place, each in enumerate(told):
        if min(len(each.old_samples), len(each.new_samples)) >= 2 and each.old.mean:
            groups.setdefault((len(each.old_samples), len(each.new_samples)), []).append(place)
    for places in groups.values():
        for start in range(0, len(places), _CHUNK):
            yield from _interval_of([told[place] for place in places[start : start + _CHUNK]], places[start:])


def _interval_of(told: Sequence[Compared], places: Sequence[int]) -> Iterator[tuple[int, float, float]]:
    """The intervals of measurements that have the same numbers of samples.

    Reckoned in distances from the parent's mean, where half of a float's digits are plenty and sort twice as fast.
    """
    means = np.array([[each.old.mean] for each in told])
    with np.errstate(all="ignore"):
        old = _resampled(np.array([each.old_samples for each in told], dtype=float) / means - 1, "old")
        new = _resampled(np.array([each.new_samples for each in told], dtype=float) / means - 1, "new")
        changes = (new - old) / np.abs(1 + old)
    changes.sort(axis=1)
    tail = RESAMPLES * 25 // 1000
    ends = 100 * np.sort(np.sign(means) * changes[:, (tail - 1, RESAMPLES - tail)].astype(float), axis=1)
    for place, (low, high) in zip(places, ends.tolist(), strict=False):
        if math.isfinite(low) and math.isfinite(high):
            yield place, low, high


def _resampled(samples: Array, seed: str) -> NDArray[np.float32]:
    """The means of RESAMPLES samples drawn with replacement, one row a measurement."""
    n = samples.shape[1]
    if n <= _MANY:
        return samples.astype(np.float32) @ _weights(n, seed)
    spread = samples.std(axis=1, keepdims=True) / math.sqrt(n)
    return np.asarray(samples.mean(axis=1, keepdims=True) + spread * _draws(seed)[None, :], dtype=np.float32)


@cache
def _weights(n: int, seed: str) -> NDArray[np.float32]:
    """How often each of n samples is drawn, over n, in each resample: a column a resample."""
    drawn = np.random.default_rng([n, *seed.encode()]).multinomial(n, [1 / n] * n, size=RESAMPLES)
    return np.ascontiguousarray((drawn / n).T, dtype=np.float32)


@cache
def _draws(seed: str) -> Array:
    return np.random.default_rng([*seed.encode()]).standard_normal(RESAMPLES)


def overlap(old: Iterable[float], new: Iterable[float]) -> bool:
    """Whether the ranges of two non-empty sides have a value in common."""
    old, new = list(old), list(new)
    return max(min(old), min(new)) <= min(max(old), max(new))
