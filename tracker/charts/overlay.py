"""Two curves over time as one SVG, each in per cent of its own first level, so that their scales don't matter. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tracker.domain.curves.builds import Build
from tracker.domain.scale import Scale, scale

_LEFT, _RIGHT, _TOP, _HEIGHT, _WIDTH = 64, 12, 12, 260, 1120
_FIRST = 5  # builds whose median is 100
MOST = 500  # points of a line


@dataclass(frozen=True, slots=True)
class CurveOverlay:
    """The paths of the lines, in the order of the curves; "" of a curve that can't be drawn. `ticks`: x with a date."""

    width: int
    height: int
    lines: Sequence[str]
    grid: Sequence[tuple[int, str]]
    ticks: Sequence[tuple[int, str]]
    left: int = _LEFT


def overlay(curves: Sequence[Sequence[Build]]) -> CurveOverlay | None:
    """Return the chart; None if no curve has two builds. A curve that begins at zero has no line."""
    relative = [_relative(builds) for builds in curves]
    times = [moment for points in relative for moment, _ in points]
    up = scale([value for points in relative for _, value in points], _TOP + _HEIGHT, _TOP)
    if up is None or min(times) == max(times):
        return None
    across = Scale(min(times), max(times), _LEFT, _WIDTH - _RIGHT)
    lines = ["L".join(f"{across(moment)} {up(value)}" for moment, value in points) for points in relative]
    ends = {build.at.timestamp(): f"{build.at:%Y-%m-%d}" for builds in curves for build in builds}
    return CurveOverlay(
        width=_WIDTH,
        height=_TOP + _HEIGHT + 24,
        lines=[f"M{line}" if line else "" for line in lines],
        grid=up.grid(lambda value: f"{value:.0f}%"),
        ticks=[(across(moment), ends[moment]) for moment in (min(times), max(times))],
    )


def _relative(builds: Sequence[Build]) -> list[tuple[float, float]]:
    """Return times with levels in per cent of the first ones; every so many builds of a long curve."""
    first = median([build.level for build in builds[:_FIRST]]) if builds else 0.0
    if len(builds) < 2 or not first:
        return []
    step = -(-len(builds) // MOST)
    return [(build.at.timestamp(), 100 * build.level / first) for build in builds[::step]]
