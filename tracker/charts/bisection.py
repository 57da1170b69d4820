"""The bisection chart: each sample of the good side, the steps and the bad side as a dot, with means. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tracker.domain.formats import number
from tracker.domain.scale import Scale, scale

MOST_GROUPS = 24
MOST_DOTS = 40  # per group
_LEFT, _TOP, _HEIGHT, _STEP = 70, 14, 150, 58


@dataclass(frozen=True, slots=True)
class Group:
    """The samples of one commit. `verdict`: good, bad or skip."""

    name: str
    verdict: str
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A drawn group: its center `x`, its dots (x, y), and its mean line from `left` to `right`."""

    group: Group
    x: int
    dots: Sequence[tuple[int, int]]
    mean: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class BisectionChart:
    """The numbers of the SVG. `grid`: y coordinates with their values; `description`: the text alternative."""

    width: int
    height: int
    columns: Sequence[Column]
    grid: Sequence[tuple[int, str]]
    description: str


def groups_of(
    good: Sequence[float], bad: Sequence[float], payload: Mapping[str, Any], later: Sequence[Group] = ()
) -> list[Group]:
    """Return the good side, the bisect steps in order, the bad side, and later measurements (rechecks and fixes).

    Groups without samples are left out.
    """
    steps = payload.get("bisect")
    groups = [Group("parent", "good", _finite(good)), *_steps(steps if isinstance(steps, Mapping) else {})]
    groups += [Group("culprit", "bad", _finite(bad)), *later[:MOST_GROUPS]]
    return [group for group in groups if group.samples]


def measured_later(name: str, metric: str, measured: Sequence[Any]) -> list[Group]:
    """Return the same metric's mean from a later result that became no finding; only its mean is stored."""
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
    """Return the drawable samples; if there are too many, an evenly spaced subset."""
    numbers = [each for each in samples if isinstance(each, (int, float)) and not isinstance(each, bool)]
    kept = [float(each) for each in numbers if -1e300 < each < 1e300]
    if len(kept) > MOST_DOTS:
        kept = [kept[number * len(kept) // MOST_DOTS] for number in range(MOST_DOTS)]
    return tuple(kept)


def read_payload(text: str) -> Mapping[str, Any]:
    """Parse a result's payload; return {} if it is not a JSON object."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def chart(groups: Sequence[Group], unit: str = "") -> BisectionChart | None:
    """Return the chart; None if there is nothing to compare."""
    every = [each for group in groups for each in group.samples]
    if len(groups) < 2:
        return None
    y = scale(every, _TOP + _HEIGHT, _TOP)
    if y is None:
        return None
    columns = [_column(group, _LEFT + 24 + _STEP * index, y) for index, group in enumerate(groups)]
    means = "; ".join(
        f"{group.name} ({group.verdict}): mean {number(fmean(group.samples))} (n = {len(group.samples)})"
        for group in groups
    )
    return BisectionChart(
        _LEFT + 24 + _STEP * len(groups),
        _TOP + _HEIGHT + 36,
        columns,
        y.grid(number),
        f"Samples{f' in {unit}' if unit else ''}: {means}",
    )


def _column(group: Group, x: int, y: Scale) -> Column:
    """Place the dots side by side, so that equal ones are visible."""
    many = len(group.samples)
    dots = [
        (x + round((index - (many - 1) / 2) * min(3.0, 34 / many)), y(value))
        for index, value in enumerate(group.samples)
    ]
    return Column(group, x, dots, y(fmean(group.samples)), x - 18, x + 18)
