"""The builds of a curve: the points of each build together, with their mean and its confidence interval. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter

from tracker.domain.curves.points import CurvePoint

# The 97.5th percentile of Student's t by degrees of freedom, from 1 on; beyond them the normal distribution's.
_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09)
_NORMAL = 1.96
_SMALLEST, _LARGEST = 1e-150, 1e150  # between them, squares and their sums are finite and not zero


@dataclass(frozen=True, slots=True)
class Build:
    """All runs of one build. `low` to `high`: the 95% confidence interval of the mean; the mean alone for one run.

    `level` is the median, on which changes are looked for.
    """

    at: datetime
    name: str
    samples: tuple[float, ...]
    sources: tuple[str, ...]
    level: float
    mean: float
    low: float
    high: float


def builds_of(points: Iterable[CurvePoint]) -> list[Build]:
    """Return the builds in the order of their first points.

    Samples that are not finite, or so large or small that their squares are not, are left out.
    """
    together: dict[str, list[CurvePoint]] = {}
    for point in sorted(points, key=attrgetter("at", "build", "source")):
        together.setdefault(point.build, []).append(point)
    return [build for name, each in together.items() if (build := _build(name, each))]


def _build(name: str, points: Sequence[CurvePoint]) -> Build | None:
    first = points[0]
    samples: tuple[float, ...] = first.samples
    sources: tuple[str, ...] = (first.source,)
    if len(points) > 1:
        samples = tuple(chain.from_iterable(point.samples for point in points))
        sources = tuple(dict.fromkeys(point.source for point in points))
    if not all(map(_is_measurable, samples)):
        samples = tuple(filter(_is_measurable, samples))
    count = len(samples)
    if not count:
        return None
    mean = sum(samples) / count
    half = _half_width(samples, mean, count)
    return Build(first.at, name, samples, sources, _median(samples, count), mean, mean - half, mean + half)


def _is_measurable(sample: float) -> bool:
    return sample == 0 or _SMALLEST < abs(sample) < _LARGEST


def _median(samples: Sequence[float], count: int) -> float:
    """Return the median, ten times as fast as the statistics module for a handful."""
    ordered, middle = sorted(samples), count // 2
    return ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _half_width(samples: Sequence[float], mean: float, count: int) -> float:
    if count < 2:
        return 0.0
    quantile = _T[count - 2] if count - 2 < len(_T) else _NORMAL
    squares = sum([(each - mean) * (each - mean) for each in samples])
    width = quantile * math.sqrt(squares / ((count - 1) * count))
    return width if math.isfinite(width) else 0.0
