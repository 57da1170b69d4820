"""The index over releases, as coordinates of an SVG whose points are links. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.domain.performance_index.index_math import IndexPoint
from tracker.domain.scale import Scale

_LEFT, _RIGHT, _TOP, _HEIGHT = 48, 24, 18, 190
_STEP, _LEAST = 64, 560


@dataclass(frozen=True, slots=True)
class Dot:
    """One point: its position, the ends of its interval, and its description."""

    name: str
    x: int
    y: int
    low: int
    high: int
    value: str
    description: str


@dataclass(frozen=True, slots=True)
class IndexChart:
    """`lines`: the points of each stretch without a gap; `grid`: heights with their values."""

    width: int
    height: int
    lines: Sequence[str]
    dots: Sequence[Dot]
    grid: Sequence[tuple[int, str]]
    description: str


def chart(points: Sequence[IndexPoint]) -> IndexChart | None:
    """Return the chart; None for fewer than two points."""
    known = [point for point in points if point.value is not None]
    if len(known) < 2:
        return None
    low = min(point.low for point in known if point.low is not None)
    high = max(point.high for point in known if point.high is not None)
    width = max(_LEAST, _LEFT + _RIGHT + _STEP * (len(points) - 1))
    across = Scale(0, len(points) - 1, _LEFT, width - _RIGHT)
    y = Scale(min(low, high - 1), high, _TOP + _HEIGHT, _TOP)  # no difference of a point fills less than the height
    dots: list[Dot] = []
    lines: list[list[str]] = [[]]
    for index, point in enumerate(points):
        if point.value is None or point.low is None or point.high is None:
            lines.append([])
            continue
        x = across(index)
        dots.append(
            Dot(point.name, x, y(point.value), y(point.low), y(point.high), f"{point.value:.1f}", describe(point))
        )
        lines[-1].append(f"{x},{y(point.value)}")
    grid = y.grid(lambda value: f"{value:.0f}" if high - low > 4 else f"{value:.1f}")
    described = ", ".join(f"{point.name} {point.value:.1f}" for point in known)
    stretches = [" ".join(line) for line in lines if len(line) > 1]
    return IndexChart(width, _TOP + _HEIGHT + 34, stretches, dots, grid, f"Performance index: {described}")


def describe(point: IndexPoint) -> str:
    """ "v5.6: 104.2, 95% CI 103.1 to 105.0, 18 of 20 benchmarks"."""
    if point.value is None:
        return f"{point.name}: no index, 0 of {point.total} benchmarks"
    text = f"{point.name}: {point.value:.1f}"
    if point.low != point.high:
        text += f", 95% CI {point.low:.1f} to {point.high:.1f}"
    return f"{text}, {point.matched} of {point.total} benchmarks"
