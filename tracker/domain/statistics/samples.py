"""One side of a comparison: the mean, spread and number of runs of its samples. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """The mean, the population standard deviation (None: not given) and the number of runs.

    The population's (divided by n), as on the mailing lists: LKP's `± n%` is this one in per cent of the mean.
    """

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
    squares = sum([(each - mean) * (each - mean) for each in samples])
    if 1e-300 < squares < 1e300:
        return SampleSummary(mean, math.sqrt(squares / n), n)
    return SampleSummary(mean, _spread([each - mean for each in samples]), n)


def _spread(distances: Sequence[float]) -> float:
    """Return their root mean square, where the squares would overflow or underflow."""
    largest = max(map(abs, distances))
    if not largest or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(sum([(each / largest) ** 2 for each in distances]) / len(distances))
