"""The bisection chart: each sample of every measured commit as a dot, with means, in git's order. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from tracker.domain.scale import Scale, scale
from tracker.domain.text.formats import number

MOST_GROUPS = 24
MOST_DOTS = 40  # per group
_LEFT, _TOP, _HEIGHT, _WIDTH = 70, 30, 190, 1120
_NARROWEST, _WIDEST = 42, 150  # pixels from one commit to the next


@dataclass(frozen=True, slots=True)
class Group:
    """The samples of one commit. `verdict`: good, bad or skip."""

    name: str
    verdict: str
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A drawn group: its center `x`, its dots (x, y), its mean line from `left` to `right`, its numbers in words."""

    group: Group
    x: int
    dots: Sequence[tuple[int, int]]
    mean: int
    left: int
    right: int
    description: str


@dataclass(frozen=True, slots=True)
class BisectionChart:
    """The numbers of the SVG. `grid`: y coordinates with their values; `description`: the text alternative."""

    width: int
    height: int
    columns: Sequence[Column]
    grid: Sequence[tuple[int, str]]
    description: str


def groups_of(
    good: Group, bad: Group, payload: Mapping[str, Any], shas: tuple[str, str], later: Sequence[Group] = ()
) -> list[Group]:
    """Return the commits in git's order, each once: good steps, the parent, the culprit, bad steps, then later
    measurements (rechecks and fixes). `good`, `bad`: the samples of the two commits `shas`, which the steps have, too.

    Each good step is newer than those before it, and each bad one older: so git bisect halves what is left. Groups
    without samples are left out.
    """
    bisect = payload.get("bisect")
    steps = [step for sha, step in _steps(bisect if isinstance(bisect, Mapping) else {}) if not _is_one_of(sha, shas)]
    before = [step for step in steps if step.verdict == "good"]
    skipped = [step for step in steps if step.verdict == "skip"]
    after = [step for step in reversed(steps) if step.verdict == "bad"]
    groups = [*before, *skipped, good, bad, *after, *later[:MOST_GROUPS]]
    return [group for group in groups if group.samples]


def _is_one_of(sha: str, shas: tuple[str, str]) -> bool:
    return any(sha and each and (sha.startswith(each) or each.startswith(sha)) for each in shas)


def measured_later(name: str, metric: str, measured: Sequence[Any]) -> list[Group]:
    """Return the same metric's mean from a later result that became no finding; only its mean is stored."""
    return [
        Group(name, "bad" if each.get("verdict") == "regression" else "good", _finite([each.get("new")]))
        for each in measured
        if isinstance(each, Mapping) and each.get("metric") == metric
    ][:1]


def _steps(bisect: Mapping[str, Any]) -> Iterator[tuple[str, Group]]:
    """Yield sha and samples of the steps, in the order in which they were tested."""
    steps = bisect.get("steps")
    for step in (steps if isinstance(steps, list) else [])[:MOST_GROUPS]:
        if isinstance(step, Mapping):
            sha, samples = str(step.get("sha", "")), step.get("samples")
            verdict = step.get("verdict") if step.get("verdict") in ("good", "bad") else "skip"
            yield sha, Group(sha[:10], str(verdict), _finite(samples if isinstance(samples, list) else []))


def side(name: str, verdict: str, samples: Sequence[Any]) -> Group:
    """Return the parent or the culprit as a group."""
    return Group(name, verdict, _finite(samples))


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
    step = max(_NARROWEST, min(_WIDEST, (_WIDTH - _LEFT) // len(groups)))
    columns = [_column(group, _LEFT + step * index + step // 2, y, unit) for index, group in enumerate(groups)]
    return BisectionChart(
        _LEFT + step * len(groups),
        _TOP + _HEIGHT + 36,
        columns,
        y.grid(number),
        "; ".join(column.description for column in columns),
    )


def _column(group: Group, x: int, y: Scale, unit: str) -> Column:
    """Place the dots side by side, so that equal ones are visible."""
    many, mean = len(group.samples), fmean(group.samples)
    dots = [
        (x + round((index - (many - 1) / 2) * min(3.0, 34 / many)), y(value))
        for index, value in enumerate(group.samples)
    ]
    spread = f" ± {number(pstdev(group.samples))}" if many > 1 else ""
    description = f"{group.name} ({group.verdict}): {number(mean)}{spread}{f' {unit}' if unit else ''}, n = {many}"
    return Column(group, x, dots, y(mean), x - 18, x + 18, description)
