"""One side of a comparison: its samples as a mean, a spread and a number of runs. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Side:
    """The mean, the population's standard deviation (None: not told) and the number of runs.

    The population's, divided by n, since the lists know it so: LKP's `± n%` is this one in per cent of the mean.
    """

    mean: float
    stddev: float | None
    n: int

    @property
    def stddev_pct(self) -> float | None:
        """The spread in per cent of the mean; None where it was not told or the mean is zero."""
        if self.stddev is None or not self.mean:
            return None
        spread = abs(self.stddev / self.mean) * 100
        return spread if math.isfinite(spread) else None

    @property
    def variance(self) -> float | None:
        """The unbiased variance (divided by n - 1); None from one run, or where no spread was told."""
        if self.stddev is None or self.n < 2:
            return None
        return self.stddev * self.stddev * self.n / (self.n - 1)


def side(samples: Sequence[float]) -> Side:
    """The summary of samples, of which there must be one at least. Too large numbers give an infinite spread."""
    n = len(samples)
    first = samples[0]
    if samples.count(first) == n:  # exactly so: the mean of equal numbers may be off by their last digit
        return Side(first, 0.0, n)
    mean = sum(samples) / n
    return Side(mean, math.sqrt(sum([(each - mean) * (each - mean) for each in samples]) / n), n)
