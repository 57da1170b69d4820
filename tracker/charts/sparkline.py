"""The sparkline of a triage row: the samples of both sides as dots, from the heights that its report caches. Pure."""

from __future__ import annotations

_STEP, _DOT = 3, 2  # one sample every 3 units, the first 2 from the edge


def paths(spark: str) -> tuple[str, str, int]:
    """Return the two sides of a sparkline as SVG paths of dots, and its width; empty without samples.

    >>> paths("17,18|3")
    ('M2 19h0M5 20h0', 'M11 5h0', 12)
    """
    if not spark:
        return "", "", 0
    old, new = (side.split(",") for side in spark.split("|"))
    good = "".join(f"M{_DOT + _STEP * number} {int(each) + _DOT}h0" for number, each in enumerate(old))
    start = _DOT + _STEP * (len(old) + 1)
    bad = "".join(f"M{start + _STEP * number} {int(each) + _DOT}h0" for number, each in enumerate(new))
    return good, bad, start + _STEP * len(new) - _DOT


def described(spark: str) -> str:
    """Return the sparkline's text alternative."""
    if not spark:
        return ""
    old, new = (side.count(",") + 1 for side in spark.split("|"))
    return f"{old} before, {new} after"
