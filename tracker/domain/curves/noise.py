"""The noise of a curve, known from its history: between runs, between builds, and whether it has two modes. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, variance

from tracker.domain.curves.builds import Build

LEAST_BUILDS = 5  # of different times: those of one bisection, whose steps stand beside its ends, are no history
_MAD = 1.4826
_LEAST_SHARE = 0.15  # of the builds in the smaller of two modes
_APART = 4.0  # spreads within the modes that they are apart
_LEAST_APART_PCT = 2.0


@dataclass(frozen=True, slots=True)
class CurveNoise:
    """Robust standard deviations in per cent of the level, with changes of the level taken out.

    `run_pct`: of the runs of one build, None without a build of two runs; `build_pct`: of the builds' medians.
    `modes_pct`: how far two modes are apart, if builds fall into two. `runs`, `builds`: from how many it is known.
    """

    run_pct: float | None
    build_pct: float
    modes_pct: float | None
    runs: int
    builds: int

    @property
    def pct(self) -> float | None:
        """What a change is compared with: the spread of builds or, if they have two modes, what these are apart.

        Builds that never differ have the spread of their runs; None if these don't differ either.
        """
        return max(self.build_pct, self.modes_pct or 0.0) or self.run_pct or None


def noise_of(builds: Sequence[Build], changes: Sequence[int]) -> CurveNoise | None:
    """Return the noise of a curve; None without a history long enough, or around zero.

    `changes`: the places of the first builds on a new level, those that were found and those that were reported.
    """
    if len({build.at for build in builds}) < LEAST_BUILDS:
        return None
    levels = _level_of_each(builds, changes)
    if not all(map(bool, levels)):
        return None
    residuals = [100 * (build.level - level) / abs(level) for build, level in zip(builds, levels, strict=True)]
    variances = [
        _variance(build.samples) / (level * level)
        for build, level in zip(builds, levels, strict=True)
        if len(build.samples) > 1
    ]
    run_pct = 100 * math.sqrt(median(variances)) if variances else None
    build_pct, modes_pct = _MAD * median(map(abs, residuals)), _modes(residuals)
    if not all(map(math.isfinite, (run_pct or 0.0, build_pct, modes_pct or 0.0))):
        return None  # levels and spreads too far apart to be divided
    return CurveNoise(run_pct, build_pct, modes_pct, sum(len(build.samples) for build in builds), len(builds))


def _variance(samples: Sequence[float]) -> float:
    """Return the variance of a build's runs, such that the median over builds is right: that of a chi-squared variable
    is below its mean (Wilson and Hilferty, 1931).
    """
    freedom = len(samples) - 1
    return variance(samples) / (1 - 2 / (9 * freedom)) ** 3


def _level_of_each(builds: Sequence[Build], changes: Sequence[int]) -> list[float]:
    """Return the level around each build: the median of the builds between two changes."""
    bounds = [0, *sorted(set(changes)), len(builds)]
    spans = [(a, b) for a, b in pairwise(bounds) if a < b]
    levels = [median(build.level for build in builds[a:b]) for a, b in spans]
    starts = [a for a, _ in spans]
    return [levels[bisect_right(starts, number) - 1] for number in range(len(builds))]


def _modes(residuals: Sequence[float]) -> float | None:
    """Return the distance of two modes in per cent; None if there is one.

    The values are cut at their widest gap; both sides must be narrow beside their distance.
    """
    ordered = sorted(residuals)
    least = max(2, math.ceil(_LEAST_SHARE * len(ordered)))
    if len(ordered) < 2 * least:
        return None
    gap, cut = max((ordered[number] - ordered[number - 1], number) for number in range(least, len(ordered) - least + 1))
    low, high = ordered[:cut], ordered[cut:]
    apart = median(high) - median(low)
    spread = _MAD * max(_deviation(low), _deviation(high))
    return apart if apart >= max(_LEAST_APART_PCT, _APART * spread) and gap >= 2 * spread else None


def _deviation(values: Sequence[float]) -> float:
    middle = median(values)
    return median(abs(value - middle) for value in values)
