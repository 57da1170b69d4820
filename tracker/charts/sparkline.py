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


_LETTERS = "▁▂▃▄▅▆▇█"


def in_letters(heights: str, most: int = 24) -> str:
    """Return heights between 0 and 100 as a line of letters, the last `most` of them; "" for fewer than two.

    >>> in_letters("0,50,100")
    '▁▄█'
    """
    values = [int(each) for each in heights.split(",")[-most:]] if heights else []
    if len(values) < 2:
        return ""
    return "".join(_LETTERS[min(len(_LETTERS) - 1, max(0, value) * len(_LETTERS) // 101)] for value in values)
