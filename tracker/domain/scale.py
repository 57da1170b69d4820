"""A linear scale: from the values of a chart to whole pixels. All charts and sparklines are drawn with it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal


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
        """Return the pixels of some round values between the lowest and the highest, each with its label."""
        return [(self(value), label(value)) for value in round_values(self.low, self.high)]


def round_values(low: float, high: float, most: int = 6) -> list[float]:
    """Return up to `most` multiples of 1, 2 or 5 times a power of ten; the only value where there is no range.

    >>> round_values(0.83, 10.2)
    [2.0, 4.0, 6.0, 8.0, 10.0]
    """
    size = high - low
    if not (math.isfinite(size) and size > 1e-12 * max(abs(low), abs(high))) or size < 1e-290:
        return [low]
    power = math.floor(math.log10(size / most))
    steps = [Decimal(digit).scaleb(power + up) for up in (0, 1) for digit in (1, 2, 5)]
    for step in steps:
        first, last = math.ceil(low / float(step)), math.floor(high / float(step))
        if last - first < most:
            return [float(number * step) for number in range(first, last + 1)] or [low]
    return [low, high]


def scale(values: Iterable[float], start: float, end: float) -> Scale | None:
    """Return the scale that holds all of the values; None without values, or where they are too far apart to draw."""
    known = list(values)
    if not known or not math.isfinite(max(known) - min(known)):
        return None
    return Scale(min(known), max(known), start, end)
