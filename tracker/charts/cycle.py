"""The burn-down of a release cycle: the open regressions at each release candidate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.domain.release_cycle import CycleStep
from tracker.domain.scale import Scale

_WIDTH, _HEIGHT, _SIDE, _TOP, _BOTTOM = 420, 96, 20, 18, 22


@dataclass(frozen=True, slots=True)
class CycleChart:
    """A burn-down as SVG coordinates: the line, its points, and a description."""

    width: int
    height: int
    line: str
    dots: Sequence[tuple[int, int, str, int]]  # x, y, version, open
    description: str


def chart(burn_down: Sequence[CycleStep]) -> CycleChart | None:
    """Return the chart of open regressions; None for fewer than two points."""
    if len(burn_down) < 2:
        return None
    x = Scale(0, len(burn_down) - 1, _SIDE, _WIDTH - _SIDE)
    y = Scale(0, max(step.open for step in burn_down) or 1, _HEIGHT - _BOTTOM, _TOP)
    dots = [
        (x(index), y(step.open), step.point.version.rpartition("-")[2], step.open)
        for index, step in enumerate(burn_down)
    ]
    summary = ", ".join(f"{step.open} at {step.point.version}" for step in burn_down)
    line = " ".join(f"{left},{top}" for left, top, _, _ in dots)
    return CycleChart(_WIDTH, _HEIGHT, line, dots, f"Open regressions: {summary}")
