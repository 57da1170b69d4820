"""Samples to numbers: change, spread and verdict of one metric between parent and culprit. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tracker.status import Verdict


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the mean, the population's standard deviation and the number of runs."""

    mean: float
    stddev: float
    n: int

    @property
    def stddev_pct(self) -> float | None:
        """The spread in per cent of the mean, as the lists know it; None where the mean is zero."""
        return abs(self.stddev / self.mean) * 100 if self.mean else None


def side(samples: Sequence[float]) -> Side:
    """The summary of samples, of which there must be one at least."""
    return Side(statistics.fmean(samples), statistics.pstdev(samples), len(samples))


def change_pct(old: float, new: float) -> float | None:
    """The movement in per cent of the old value; None from zero, where a percentage means nothing."""
    if old == 0 or not math.isfinite(old) or not math.isfinite(new):
        return None
    change = 100 * (new - old) / abs(old)
    return change if math.isfinite(change) else None


def better_pct(raw: float | None, direction: str) -> float | None:
    """The same movement with plus for better; None where the direction is not known."""
    if raw is None or direction not in ("higher", "lower"):
        return None
    return raw if direction == "higher" else -raw


def verdict(old: float, new: float, direction: str) -> Verdict:
    """Worse or better by the metric's direction; unknown where it has none or nothing moved."""
    if direction not in ("higher", "lower") or old == new:
        return Verdict.UNKNOWN
    return Verdict.IMPROVEMENT if (new > old) == (direction == "higher") else Verdict.REGRESSION
