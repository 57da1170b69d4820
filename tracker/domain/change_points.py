"""Changes in a curve: where its level moved to stay, beyond what it usually does between builds. Pure.

The curve is the median of each build's runs, so that the noise of runs, builds and long spikes are told apart:

- A change is a difference between the medians of the builds before and of those after (the moving-window form of
  Hodges and Lehmann's shift), looked for at every build that has enough builds on both sides.
- It has to exceed the spread of the builds around those medians (robust, by the median absolute deviation), as a
  t-test would ask; on both sides most builds have to lie on their own side of the middle, so a spike is none.
- It has to exceed what the curve did before between any two such windows: a curve whose level wanders with each build
  has to move further than it ever wanders. E-divisive (Matteson and James, 2014; Otava) and PELT (Killick, 2012) take
  such wandering for changes; docs/measurements.md has the comparison.

Only builds up to `AFTER` past the change are looked at, so a change is found as soon as these are measured. How large
it is, is known better with time: `shifts` compares the whole stretches on both sides of each change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tracker.domain.statistics import ENDS, RESAMPLES, Array, change_pct

BEFORE, LEAST_BEFORE, AFTER = 12, 5, 6  # builds
# What a change must exceed, chosen on made series (benchmarks/accuracy/change_points.py)
SCORE = 5.0  # robust spreads that the medians must be apart
USUAL = 2.0  # times the curve's usual movement
SHARE = 0.9  # of the builds on each side that lie on their side of the middle
LEAST_PCT = 1.0  # of the level before
_USUAL_QUANTILE = 0.9
_FLOOR = 1e-9  # of the level: the spread of equal numbers
MAD = 1.4826  # a normal distribution's standard deviation in median absolute deviations


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """`index`: the first build on the new level. `old` and `new`: the medians before and after. `noise`: the robust
    standard deviation of the builds around them.
    """

    index: int
    old: float
    new: float
    noise: float


def change_points(levels: Sequence[float]) -> list[ChangePoint]:
    """Return the changes of a curve, by one level per build in order; [] where there are too few builds.

    Levels must be finite. What was found stays found as builds are added, unless its place is known better by then.
    """
    curve = np.asarray(levels, dtype=float)
    changes: list[ChangePoint] = []
    start = 0
    while (change := _first_change(curve[start:])) is not None:
        start += change.index
        changes.append(replace(change, index=start))
    return changes


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a level moved: the medians of all builds from the change before, or the beginning, to the change after,
    or the end. `interval`: of the change in per cent, None from zero and for less than LEAST_BEFORE builds on a side.
    """

    old: float
    new: float
    interval: tuple[float, float] | None

    @property
    def change_pct(self) -> float | None:
        """The change in per cent of the old level; None from zero."""
        return change_pct(self.old, self.new)


def shifts(levels: Sequence[float], changes: Sequence[ChangePoint]) -> list[Shift]:
    """Return how far each change moved the level.

    The 95% intervals are the percentile bootstrap's: the builds of each stretch are drawn again, with a fixed seed.
    """
    bounds = [0, *(change.index for change in changes), len(levels)]
    stretches = [np.asarray(levels[start:end], dtype=float) for start, end in pairwise(bounds)] if changes else []
    medians = [float(np.median(stretch)) for stretch in stretches]
    rng = np.random.default_rng(len(levels))
    drawn = [_medians_drawn_again(stretch, rng) for stretch in stretches]
    return [
        Shift(old, new, _interval(olds, news) if old else None)
        for (old, new), (olds, news) in zip(pairwise(medians), pairwise(drawn), strict=True)
    ]


def _medians_drawn_again(stretch: Array, rng: np.random.Generator) -> Array | None:
    if len(stretch) < LEAST_BEFORE:
        return None
    return np.asarray(np.median(rng.choice(stretch, (RESAMPLES, len(stretch))), axis=1))


def _interval(olds: Array | None, news: Array | None) -> tuple[float, float] | None:
    if olds is None or news is None or not np.all(olds):
        return None
    low, high = np.sort(100 * (news - olds) / np.abs(olds))[list(ENDS)]
    return (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None


def _first_change(curve: Array) -> ChangePoint | None:
    """Return the first change. After it the curve begins anew: no window reaches back over it."""
    if len(curve) < LEAST_BEFORE + AFTER:
        return None
    # All windows; the first ones have fewer builds before them than BEFORE
    parts = [
        _compared(curve[None, :at], curve[None, at : at + AFTER])
        for at in range(LEAST_BEFORE, min(BEFORE, len(curve) - AFTER + 1))
    ]
    if len(curve) >= BEFORE + AFTER:
        every = sliding_window_view(curve, BEFORE + AFTER)
        parts.append(_compared(every[:, :BEFORE], every[:, BEFORE:]))
    # For each place: the medians before and after, the spread around them, and the lesser share on its own side
    olds, news, spreads, shares = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    shifts = np.abs(news - olds)
    candidates = (
        (shifts > 0) & (shifts >= SCORE * spreads) & (shifts * 100 >= LEAST_PCT * np.abs(olds)) & (shares >= SHARE)
    )
    for number in np.flatnonzero(candidates):
        # How far the curve has moved between windows before, where no change was found; None if not known yet
        earlier = shifts[: max(0, number - AFTER)]
        usual = float(np.sort(earlier)[int(_USUAL_QUANTILE * len(earlier))]) if len(earlier) >= AFTER else None
        if usual is not None and shifts[number] < USUAL * usual:
            continue
        # The shift is largest where the windows meet at the step: look on a little.
        near = slice(number, number + AFTER)
        best = int(number) + int(np.argmax(np.where(candidates[near], shifts[near], -1)))
        old, new, at = float(olds[best]), float(news[best]), best + LEAST_BEFORE
        # The change is at the build where the two levels explain the curve best (least absolute deviations).
        low, high = max(1, at - AFTER), min(len(curve) - 1, at + AFTER)
        costs = np.cumsum(np.abs(curve[low:high] - old) - np.abs(curve[low:high] - new))
        index = low + int(np.argmin(np.concatenate([[0.0], costs])))
        return ChangePoint(index, old, new, float(spreads[best]))
    return None


def _compared(before: Array, after: Array) -> tuple[Array, Array, Array, Array]:
    old, new = np.median(before, axis=1), np.median(after, axis=1)
    residuals = np.abs(np.concatenate([before - old[:, None], after - new[:, None]], axis=1))
    spread = np.maximum(MAD * np.median(residuals, axis=1), _FLOOR * np.abs(old))
    middle, up = ((old + new) / 2)[:, None], (new > old)[:, None]
    share = np.minimum(((before < middle) == up).mean(axis=1), ((after > middle) == up).mean(axis=1))
    return old, new, spread, share
