"""The change between two means, and its verdict by the metric's direction. Pure."""

from __future__ import annotations

import math

from tracker.domain.events import Grade, Verdict

# Why a report is held whose metric has no direction; `metric` is its name.
NO_DIRECTION = "no direction is set for {metric}"
CONTRADICTION = "the result says {stated} is better for {metric}, but it is set to {known} here"
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
