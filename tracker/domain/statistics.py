"""Is a change real, and is it good: samples, changes, Welch's t-test, bootstrap intervals, verdicts. Pure.

The change is the metric's own, in per cent of the parent's mean. Welch's t-test says whether it is significant (B. L.
Welch, Biometrika 34, 1947), with the numbers of scipy.stats.ttest_ind but without the second that importing scipy.stats
takes. A 95% interval, by the percentile bootstrap of B. Efron (1979) with a fixed seed, says how large it is: the same
samples always give the same interval. Whether it is good depends on the metric's direction, never on the sign alone.

Standard deviations are the population's (divided by n), as on the mailing lists: LKP's `± n%` is that in per cent of
the mean. Whole batches are graded at once, since thousands of measurements take only a few calls of numpy and scipy.
Numbers from labs may be zero, huge or tiny: what would not be finite is None instead.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracker.domain.events import Grade, Verdict

# --- Samples ---


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """The mean, the population standard deviation (None: not given) and the number of runs."""

    mean: float
    stddev: float | None
    n: int

    @property
    def stddev_pct(self) -> float | None:
        """The spread in per cent of the mean; None if not given or the mean is zero."""
        if self.stddev is None or not self.mean:
            return None
        spread = abs(self.stddev / self.mean) * 100
        return spread if math.isfinite(spread) else None

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for a single run or without a spread."""
        return None if self.stddev is None or self.n < 2 else self.stddev / math.sqrt(self.n - 1)


def summarise(samples: Sequence[float]) -> SampleSummary:
    """Return the summary of at least one sample. Numbers that overflow give an infinite spread."""
    n = len(samples)
    first = samples[0]
    if samples.count(first) == n:  # exact: the computed mean of equal numbers may be off in the last digit
        return SampleSummary(first, 0.0, n)
    mean = sum(samples) / n
    squares = sum([(sample - mean) * (sample - mean) for sample in samples])
    if 1e-300 < squares < 1e300:
        return SampleSummary(mean, math.sqrt(squares / n), n)
    # The squares would overflow or underflow
    largest = max(abs(sample - mean) for sample in samples)
    if not largest or not math.isfinite(largest):
        return SampleSummary(mean, largest, n)
    return SampleSummary(
        mean, largest * math.sqrt(sum([((sample - mean) / largest) ** 2 for sample in samples]) / n), n
    )


# --- Changes and verdicts ---

# Why a report is held whose metric has no direction; `metric` is its name.
NO_DIRECTION = "no direction is set for {metric}"
OTHER_UNIT = "the result gives {metric} in {stated}, but it is stored in {known} here"
CONTRADICTION = "the result says {stated} is better for {metric}, but it is set to {known} here"
_LEAST_RATIO = 1e-6  # of the new value to the old one, in an order
ALPHA = 0.05  # the significance level: a p-value of this or more is not significant
# For a mail: a result in which nothing moved makes one with at most this probability by its key metrics, and once more
# by all others together. At 0.05 forty results of chance made seven to fifteen mails.
MAIL_ALPHA = 0.01


def change_pct(old: float, new: float) -> float | None:
    """Return the change in per cent of the old value, 100·(new - old)/|old|; None from zero, where it is undefined, and
    from next to zero, where it says nothing.
    """
    if old == 0 or not math.isfinite(old) or not math.isfinite(new):
        return None
    change = 100 * (new - old) / abs(old)
    return change if abs(change) < MOST_PCT else None


MOST_PCT = 1e8  # a millionfold; a counter that went from a rounding error to 41 "grew" by 20499999999900.0%


def better_pct(raw: float | None, direction: str) -> float | None:
    """Return the same change with plus for better; None if the direction is unknown."""
    if raw is None or direction not in ("higher", "lower"):
        return None
    return raw if direction == "higher" else -raw


def verdict_of(old: float, new: float, direction: str) -> Verdict:
    """Return the verdict on a change by the metric's direction; unknown without a direction or a change."""
    if direction not in ("higher", "lower") or old == new:
        return Verdict.UNKNOWN
    return Verdict.IMPROVEMENT if (new > old) == (direction == "higher") else Verdict.REGRESSION


def grade_of(old: float, new: float, p: float | None, direction: str) -> Grade:
    """Return what a measurement shows; `p` None: it could not be tested."""
    if p is None:
        return Grade.NOT_TESTABLE
    if p >= ALPHA:
        return Grade.NOT_SIGNIFICANT
    return Grade(verdict_of(old, new, direction).value)


def false_discovery(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for their number: those below a share name changes of which at most that share is
    chance (Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57, 1995). None, which was not tested, stays None.

    >>> false_discovery([0.01, 0.04, None, 0.5])
    [0.03, 0.06, None, 0.5]
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    least = 1.0
    for rank in range(len(order), 0, -1):
        p, index = order[rank - 1]
        least = min(least, p * len(order) / rank)
        corrected[index] = least
    return corrected


def family_wise(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected so that any of them being chance has the level's probability (S. Holm, Scand. J.
    Stat. 6, 1979): for the few that matter most.

    >>> family_wise([0.01, 0.04, None])
    [0.02, 0.04, None]
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    most = 0.0
    for rank, (p, index) in enumerate(order):
        most = max(most, min(1.0, p * (len(order) - rank)))
        corrected[index] = most
    return corrected


def certain(change: float | None, low: float | None, high: float | None, spread: float | None) -> float:
    """Return how much of a change is certain, to sort by: up to the near end of its interval and beyond its spread.

    All in per cent. The result is 100 · |ln(new ÷ old)|, so that half and double weigh the same; 0 without a change.

    >>> round(certain(-50.0, None, None, None), 1) == round(certain(100.0, None, None, None), 1) == 69.3
    True
    >>> round(certain(-50.0, -60.0, -40.0, 5.0)), certain(-50.0, -60.0, 1.0, None), certain(-5.0, None, None, 8.0)
    (51, 0.0, 0.0)
    """
    if change is None or not math.isfinite(change):
        return 0.0
    size = max(0.0, abs(change) - (spread or 0.0))
    if low is not None and high is not None:
        size = min(size, min(abs(low), abs(high)) if low * high > 0 else 0.0)
    ratio = 1 + math.copysign(size, change) / 100
    return 100 * abs(math.log(max(ratio, _LEAST_RATIO)))


# --- Grading ---

Z = 1.959964  # the 97.5th percentile of the normal distribution
RESAMPLES = 599  # as R. Wilcox advises: the 15th and the 585th of them are exactly the ends of a 95% interval
ENDS = (14, 584)
MANY = 200  # from here on, resampled means are drawn from a normal distribution
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
    same with plus for better. `low_pct` to `high_pct`: the 95% interval of `change_pct`, by the bootstrap,
    or by Welch's t where there are no samples.
    """

    verdict: Grade
    change_pct: float | None
    better_pct: float | None
    p_value: float | None
    low_pct: float | None = None
    high_pct: float | None = None


def effect(change: float | None, noise_pct: float | None) -> float | None:
    """Return a change in multiples of the usual noise, both in per cent; None if the noise is unknown."""
    if change is None or not noise_pct:
        return None
    times = abs(change) / noise_pct
    return times if math.isfinite(times) else None


def grade(measurement: Compared, direction: str) -> Graded:
    """Grade one measurement by the direction of its metric: higher, lower or unknown."""
    return grade_all([measurement], [direction])[0]


def grade_all(measurements: Sequence[Compared], directions: Sequence[str]) -> list[Graded]:
    """Grade measurements, each by the direction of its metric. Returns them in the order given."""
    tested, intervals = welch([_as_resolved(pair) for pair in measurements]), _intervals(measurements)
    graded = []
    for index, (measurement, direction, p) in enumerate(zip(measurements, directions, tested, strict=True)):
        old, new = measurement.old.mean, measurement.new.mean
        raw = change_pct(old, new)
        low, high = intervals.get(index) or _interval_by_summary(measurement.old, measurement.new) or (None, None)
        graded.append(Graded(grade_of(old, new, p, direction), raw, better_pct(raw, direction), p, low, high))
    return graded


def _as_resolved(pair: Compared) -> tuple[SampleSummary, SampleSummary]:
    """Return both sides; one whose runs are all equal gets the spread that rounding hides: that of numbers of which
    only the written digits are known.
    """
    if not pair.old_samples or not pair.new_samples or (pair.old.stddev and pair.new.stddev):
        return pair.old, pair.new
    exponents = [
        Decimal(repr(float(sample))).normalize().as_tuple().exponent
        for sample in chain(pair.old_samples, pair.new_samples)
    ]
    step = 10.0 ** min(0, *(exponent for exponent in exponents if isinstance(exponent, int)))
    old, new = (side if side.stddev else replace(side, stddev=step / math.sqrt(12)) for side in (pair.old, pair.new))
    return old, new


def welch(pairs: Sequence[tuple[SampleSummary, SampleSummary]]) -> list[float | None]:
    """Return the two-sided p of Welch's t-test (unequal variances) for each pair; None where it can't be computed.

    The same numbers as scipy.stats.ttest_ind(equal_var=False). Without any spread, equal means give 1, others 0.
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


def t_quantile(freedom: float) -> float:
    """Return the 97.5th percentile of Student's t, which both ends of a 95% interval are that many errors away.

    >>> round(t_quantile(3), 2)
    3.18
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def _intervals(measurements: Sequence[Compared]) -> dict[int, tuple[float, float]]:
    """Return the intervals of the measurements with at least two samples per side and a nonzero mean, by position."""
    groups: dict[tuple[int, int], list[int]] = {}
    for index, measurement in enumerate(measurements):
        old, new = len(measurement.old_samples), len(measurement.new_samples)
        if old >= 2 and new >= 2 and measurement.old.mean:
            groups.setdefault((old, new), []).append(index)
    intervals: dict[int, tuple[float, float]] = {}
    for indices in groups.values():
        for start in range(0, len(indices), _CHUNK):
            chunk = indices[start : start + _CHUNK]
            intervals |= zip(chunk, _interval_of([measurements[index] for index in chunk]), strict=True)
    return {index: ends for index, ends in intervals.items() if all(map(math.isfinite, ends))}


def _interval_of(measurements: Sequence[Compared]) -> list[tuple[float, float]]:
    """Return the intervals of measurements with the same numbers of samples; not finite where there is none.

    Computed as distances from the parent's mean, for which float32 is precise enough; it sorts twice as fast.
    """
    means = np.array([[measurement.old.mean] for measurement in measurements])
    with np.errstate(all="ignore"):
        old = _resampled(_table([measurement.old_samples for measurement in measurements]) / means - 1, "old")
        new = _resampled(_table([measurement.new_samples for measurement in measurements]) / means - 1, "new")
        changes = (new - old) / np.abs(1 + old)
        changes.sort(axis=1)
        ends = 100 * np.sort(np.sign(means) * changes[:, ENDS].astype(float), axis=1)
    return list(map(tuple, ends.tolist()))


def _interval_by_summary(old: SampleSummary, new: SampleSummary) -> tuple[float, float] | None:
    """Return the interval of a change by Welch's t, for sides of which only mean, spread and number are given.

    The parent's mean is uncertain, too: its error counts by the ratio of the means (the delta method).
    """
    change, a, b = change_pct(old.mean, new.mean), old.error, new.error
    if change is None or a is None or b is None:
        return None
    a *= abs(new.mean / old.mean)
    scale = max(a, b)
    if not scale or not math.isfinite(scale):
        return None
    x, y = (a / scale) ** 2, (b / scale) ** 2
    freedom = (x + y) ** 2 / (x * x / (old.n - 1) + y * y / (new.n - 1))
    half = 100 * t_quantile(freedom) * scale * math.sqrt(x + y) / abs(old.mean)
    return (change - half, change + half) if math.isfinite(half) else None


def _table(rows: Sequence[Sequence[float]]) -> Array:
    """Return rows of one length as an array, ten times as fast as numpy's own conversion."""
    return np.fromiter(chain.from_iterable(rows), dtype=float).reshape(len(rows), -1)


def _resampled(samples: Array, seed: str) -> NDArray[np.float32]:
    """Return the means of RESAMPLES samples drawn with replacement, one row per measurement."""
    n = samples.shape[1]
    if n <= MANY:
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


def share_against(old: Sequence[float], new: Sequence[float]) -> float:
    """Return in which share of all pairs of an old and a new run the change goes the other way; ties count half.

    >>> share_against([1, 2, 3], [4, 5, 6]), share_against([1, 2, 6], [4, 5, 7])
    (0.0, 0.2222222222222222)
    """
    ordered, values = np.sort(np.asarray(old, dtype=float)), np.asarray(new, dtype=float)
    lower, upto = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    share = float(np.mean(lower + upto - len(ordered))) / len(ordered)  # 1: each new run is higher than each old one
    return (1 - abs(share)) / 2


_MANY_RUNS = 50  # of a side, whose order alone can have a p below 1e-28


def least_p(old: int, new: int) -> float:
    """Return the least p that so many runs can have by their order alone, whatever their distribution: that of the two
    orders in which one side is wholly above the other (F. Wilcoxon, Biometrics Bull. 1, 1945).

    >>> least_p(3, 3), round(least_p(8, 8), 5)
    (0.1, 0.00016)
    """
    fewer = min(old, new)
    return 0.0 if fewer > _MANY_RUNS else min(1.0, 2 / math.comb(old + new, fewer))
