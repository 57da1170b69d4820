"""The bisection as a chart: every sample of the good side, each step and the bad side as a dot, with means. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

MOST_GROUPS = 24
MOST_DOTS = 40  # of a group
_LEFT, _TOP, _HEIGHT, _STEP = 70, 14, 150, 58


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of one commit. `verdict`: good, bad or skip."""

    name: str
    verdict: str
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A group as it is drawn: its middle, its dots (x, y), the height of its mean, and its words."""

    group: Group
    x: int
    dots: Sequence[tuple[int, int]]
    mean: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class BisectionChart:
    """Numbers of an SVG, and the same in words. `grid`: heights with the values that they stand for."""

    width: int
    height: int
    columns: Sequence[Column]
    grid: Sequence[tuple[int, str]]
    words: str


def groups_of(
    good: Sequence[float], bad: Sequence[float], payload: Mapping[str, Any], later: Sequence[Group] = ()
) -> list[Group]:
    """The good side, the steps of the bisection in their order, the bad side, and what was measured later: rechecks and
    fixes. What holds no samples is left out.
    """
    steps = payload.get("bisect")
    told = [Group("parent", "good", _finite(good)), *_steps(steps if isinstance(steps, Mapping) else {})]
    told += [Group("culprit", "bad", _finite(bad)), *later[:MOST_GROUPS]]
    return [group for group in told if group.samples]


def measured_later(name: str, metric: str, measured: Sequence[Any]) -> list[Group]:
    """What a later result, which became no finding, says of the same metric: its mean alone is kept."""
    return [
        Group(name, "bad" if each.get("verdict") == "regression" else "good", _finite([each.get("new")]))
        for each in measured
        if isinstance(each, Mapping) and each.get("metric") == metric
    ][:1]


def _steps(bisect: Mapping[str, Any]) -> Iterator[Group]:
    steps = bisect.get("steps")
    for step in (steps if isinstance(steps, list) else [])[:MOST_GROUPS]:
        if isinstance(step, Mapping):
            samples = step.get("samples")
            verdict = step.get("verdict") if step.get("verdict") in ("good", "bad") else "skip"
            yield Group(
                str(step.get("sha", ""))[:10], str(verdict), _finite(samples if isinstance(samples, list) else [])
            )


def _finite(samples: Sequence[Any]) -> tuple[float, ...]:
    """What can be drawn; of many, some from all along."""
    told = [each for each in samples if isinstance(each, (int, float)) and not isinstance(each, bool)]
    kept = [float(each) for each in told if -1e300 < each < 1e300]
    if len(kept) > MOST_DOTS:
        kept = [kept[number * len(kept) // MOST_DOTS] for number in range(MOST_DOTS)]
    return tuple(kept)


def read_payload(text: str) -> Mapping[str, Any]:
    """A result as its lab handed it in; nothing where it is no JSON object."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def chart(groups: Sequence[Group], unit: str = "") -> BisectionChart | None:
    """The chart; None where there is nothing to compare."""
    every = [each for group in groups for each in group.samples]
    if len(groups) < 2:
        return None
    low, high = min(every), max(every)
    size = high - low or abs(high) or 1.0
    if not math.isfinite(size):
        return None

    def y(value: float) -> int:
        return round(_TOP + _HEIGHT * ((high - value) / size))

    columns = [_column(group, _LEFT + 24 + _STEP * place, y) for place, group in enumerate(groups)]
    values = sorted({low, (low + high) / 2, high})
    told = "; ".join(
        f"{group.name} ({group.verdict}): mean {short(fmean(group.samples))} of {len(group.samples)}"
        for group in groups
    )
    return BisectionChart(
        _LEFT + 24 + _STEP * len(groups),
        _TOP + _HEIGHT + 36,
        columns,
        [(y(value), short(value)) for value in values],
        f"Samples{f' in {unit}' if unit else ''}: {told}",
    )


def _column(group: Group, x: int, y: Any) -> Column:
    """Dots side by side, so that equal ones show."""
    many = len(group.samples)
    dots = [
        (x + round((place - (many - 1) / 2) * min(3.0, 34 / many)), y(value))
        for place, value in enumerate(group.samples)
    ]
    return Column(group, x, dots, y(fmean(group.samples)), x - 18, x + 18)


def short(value: float) -> str:
    """A value for an axis: "184,436", "3.052"."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
