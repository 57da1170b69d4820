"""The builds of a curve: the points of each build together, with their mean and its confidence interval. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from tracker.domain.curves.points import CurvePoint

# The 97.5th percentile of Student's t by degrees of freedom, from 1 on; beyond them the normal distribution's.
_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09)
_QUANTILES = np.array([0.0, 0.0, *_T, 1.96])  # by number of runs: one has no spread
_SMALLEST, _LARGEST = 1e-150, 1e150  # between them, squares and their sums are finite and not zero


class Build(NamedTuple):  # a page makes thousands; frozen dataclasses take four times as long to make
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
    samples = _measurable([_samples(each) for each in together.values()])
    kept = [(name, each, own) for (name, each), own in zip(together.items(), samples, strict=True) if own]
    columns = _statistics([own for _, _, own in kept])
    return [
        Build(each[0].at, name, own, _sources(each), *numbers)
        for (name, each, own), numbers in zip(kept, zip(*columns, strict=True), strict=True)
    ]


def _samples(points: Sequence[CurvePoint]) -> tuple[float, ...]:
    return points[0].samples if len(points) == 1 else tuple(chain.from_iterable(each.samples for each in points))


def _sources(points: Sequence[CurvePoint]) -> tuple[str, ...]:
    return (points[0].source,) if len(points) == 1 else tuple(dict.fromkeys(each.source for each in points))


def _measurable(samples: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return the samples of each build without those that can't be squared; mostly, there are none."""
    size = np.abs(np.fromiter(chain.from_iterable(samples), float))
    if np.all((size == 0) | ((size > _SMALLEST) & (size < _LARGEST))):
        return samples
    return [tuple(each for each in own if each == 0 or _SMALLEST < abs(each) < _LARGEST) for own in samples]


def _statistics(samples: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return median, mean, and both ends of the mean's interval of each build, all builds at once."""
    if not samples:
        return [], [], [], []
    counts = np.fromiter(map(len, samples), np.int64)
    flat = np.fromiter(chain.from_iterable(samples), float)
    ends = np.cumsum(counts)
    starts = ends - counts
    of_build = np.repeat(np.arange(len(counts)), counts)
    means = np.add.reduceat(flat, starts) / counts
    squares = np.add.reduceat((flat - means[of_build]) ** 2, starts)
    half = _QUANTILES[np.minimum(counts, len(_QUANTILES) - 1)] * np.sqrt(squares / np.maximum(1, (counts - 1) * counts))
    ordered = flat[np.lexsort((flat, of_build))]
    medians = (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2
    return medians.tolist(), means.tolist(), (means - half).tolist(), (means + half).tolist()
