"""The change between two means, and its verdict by the metric's direction. Pure."""

from __future__ import annotations

import math

from tracker.domain.events import Grade, Verdict

# Why a report is held whose metric has no direction; `metric` is its name.
NO_DIRECTION = "no direction is set for {metric}"
CONTRADICTION = "the result says {stated} is better for {metric}, but it is set to {known} here"
_LEAST_RATIO = 1e-6  # of the new value to the old one, in an order
ALPHA = 0.05  # the significance level: a p-value of this or more is not significant


def change_pct(old: float, new: float) -> float | None:
    """Return the change in per cent of the old value, 100·(new - old)/|old|; None from zero, where it is undefined."""
    if old == 0 or not math.isfinite(old) or not math.isfinite(new):
        return None
    change = 100 * (new - old) / abs(old)
    return change if math.isfinite(change) else None


def better_pct(raw: float | None, direction: str) -> float | None:
    """Return the same change with plus for better; None if the direction is unknown."""
    if raw is None or direction not in ("higher", "lower"):
        return None
    return raw if direction == "higher" else -raw


def verdict_of(old: float, new: float, direction: str) -> Verdict:
    """Return the verdict on a change by the metric's direction; unknown without a direction or a change."""
    if direction not in ("higher", "lower") or old == new:
        return Verdict.UNKNOWN
    return Verdict.IMPROVEMENT if (new > old) == (direction == "higher") else Verdict.REGRESSION


def grade_of(old: float, new: float, p: float | None, direction: str) -> Grade:
    """Return what a measurement shows; `p` None: it could not be tested."""
    if p is None:
        return Grade.NOT_TESTABLE
    if p >= ALPHA:
        return Grade.NOT_SIGNIFICANT
    return Grade(verdict_of(old, new, direction).value)


def certain(change: float | None, low: float | None, high: float | None, spread: float | None) -> float:
    """Return how much of a change is certain, for an order: up to the near end of its interval and beyond its spread.

    All in per cent. The result is 100 · |ln(new ÷ old)|, so that half and double weigh the same; 0 without a change.

    >>> round(certain(-50.0, None, None, None), 1) == round(certain(100.0, None, None, None), 1) == 69.3
    True
    >>> round(certain(-50.0, -60.0, -40.0, 5.0)), certain(-50.0, -60.0, 1.0, None), certain(-5.0, None, None, 8.0)
    (51, 0.0, 0.0)
    """
    if change is None or not math.isfinite(change):
        return 0.0
    size = max(0.0, abs(change) - (spread or 0.0))
    if low is not None and high is not None:
        near = min(abs(low), abs(high)) if low * high > 0 else 0.0
        size = min(size, near)
    ratio = 1 + math.copysign(size, change) / 100
    return 100 * abs(math.log(max(ratio, _LEAST_RATIO)))
