"""Two means to a movement, and by the metric's direction to a word. Pure."""

from __future__ import annotations

import math

from tracker.domain.events import Grade, Verdict

# Why a report waits whose metric has no direction; `metric` is its name.
NO_DIRECTION = "nobody has told which direction of {metric} is better"
CONTRADICTION = "the result says {said} is better of {metric}, but we know it as {known}"
ALPHA = 0.05  # a difference that chance makes as often as this, or more often, is none


def change_pct(old: float, new: float) -> float | None:
    """The movement in per cent of the old value, 100·(new - old)/|old|; None from zero, where it means nothing."""
    if old == 0 or not math.isfinite(old) or not math.isfinite(new):
        return None
    change = 100 * (new - old) / abs(old)
    return change if math.isfinite(change) else None


def better_pct(raw: float | None, direction: str) -> float | None:
    """The same movement with plus for better; None where the direction is not known."""
    if raw is None or direction not in ("higher", "lower"):
        return None
    return raw if direction == "higher" else -raw


def word(old: float, new: float, direction: str) -> Verdict:
    """The word for a movement by the metric's direction; unknown where it has none or nothing moved."""
    if direction not in ("higher", "lower") or old == new:
        return Verdict.UNKNOWN
    return Verdict.IMPROVEMENT if (new > old) == (direction == "higher") else Verdict.REGRESSION


def grade_of(old: float, new: float, p: float | None, direction: str) -> Grade:
    """What a tested measurement shows; `p` None: it could not be tested."""
    if p is None:
        return Grade.NOT_TESTABLE
    if p >= ALPHA:
        return Grade.NOT_SIGNIFICANT
    return Grade(word(old, new, direction).value)
