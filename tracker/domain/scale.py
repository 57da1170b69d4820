"""A linear scale: from the values of a chart to whole pixels. All charts and sparklines are drawn with it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high`, drawn from `start` to `end`; `start` is the larger on an upward axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> int:
        """Return the pixel of a value; values outside the range lie outside the axis.

        >>> Scale(0, 10, 100, 0)(2.5)
        75
        """
        size = self.high - self.low
        return round(self.start + (self.end - self.start) * ((value - self.low) / size if size else 0.5))

    def grid(self, label: Callable[[float], str]) -> list[tuple[int, str]]:
        """Return the pixels of the lowest, the middle and the highest value, each with its label."""
        values = sorted({self.low, (self.low + self.high) / 2, self.high})
        return [(self(value), label(value)) for value in values]


def scale(values: Iterable[float], start: float, end: float) -> Scale | None:
    """Return the scale that holds all of the values; None without values, or where they are too far apart to draw."""
    known = list(values)
    if not known or not math.isfinite(max(known) - min(known)):
        return None
    return Scale(min(known), max(known), start, end)
