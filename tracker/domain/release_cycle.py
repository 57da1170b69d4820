"""A release cycle: its release candidates, the date of the next one, and the open reports at each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# Documentation/process/2.Process.rst: the merge window is open for two weeks and ends with -rc1; a new -rc follows
# about every week, and the release after six to ten of them.
MERGE_WINDOW = timedelta(days=14)
WEEK = timedelta(days=7)
USUAL = 8  # a cycle usually has no later -rc than this: the release may come instead


@dataclass(frozen=True, slots=True)
class CyclePoint:
    """A release candidate, or another named moment."""

    version: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ReportSpan:
    """When a report was sent and closed, if it was, and whether it is open now."""

    reported_at: datetime | None
    closed_at: datetime | None
    is_open: bool
    is_regression: bool


@dataclass(frozen=True, slots=True)
class CycleStep:
    """What was reported and closed since the previous point, and what was open at this one."""

    point: CyclePoint
    new: int
    closed: int
    open: int


def points(version: str, tagged: Mapping[int, datetime]) -> list[CyclePoint]:
    """Return the release candidates of a cycle in order, from their tags."""
    return [CyclePoint(f"{version}-rc{number}", at) for number, at in sorted(tagged.items())]


def upcoming(version: str, began: datetime | None, tagged: Mapping[int, datetime], now: datetime) -> CyclePoint | None:
    """Return the next -rc of a running cycle, a week after the last one; None if it can't be predicted."""
    if tagged:
        last = max(tagged)
        name = f"{version}-rc{last + 1}" if last < USUAL - 1 else f"{version} or {version}-rc{last + 1}"
        at = tagged[last] + WEEK
    elif began:
        name, at = f"{version}-rc1", began + MERGE_WINDOW
    else:
        return None
    return CyclePoint(name, at) if now - at < 2 * WEEK else None


def steps(found: Sequence[CyclePoint], lives: Iterable[ReportSpan]) -> list[CycleStep]:
    """Return the burn-down of regressions, point by point."""
    counted = [life for life in lives if life.is_regression]
    told = []
    for place, point in enumerate(found):
        before = found[place - 1].at if place else None
        told.append(
            CycleStep(
                point,
                sum(_within(life.reported_at, before, point.at) for life in counted),
                sum(_within(life.closed_at, before, point.at) for life in counted),
                sum(_was_open(life, point.at) for life in counted),
            )
        )
    return told


def _within(moment: datetime | None, after: datetime | None, until: datetime) -> bool:
    return moment is not None and moment <= until and (after is None or moment > after)


def _was_open(life: ReportSpan, at: datetime) -> bool:
    told = life.reported_at is not None and life.reported_at <= at
    return told and (life.closed_at is None or life.closed_at > at) and (life.is_open or life.closed_at is not None)


@dataclass(frozen=True, slots=True)
class CycleChart:
    """A burn-down as SVG coordinates: the line, its points, and a description in words."""

    width: int
    height: int
    line: str
    dots: Sequence[tuple[int, int, str, int]]  # x, y, version, open
    words: str


def chart(told: Sequence[CycleStep], width: int = 420, height: int = 96) -> CycleChart | None:
    """Return the chart of open regressions; None for fewer than two points."""
    if len(told) < 2:
        return None
    most = max(step.open for step in told) or 1
    across = (width - 40) / (len(told) - 1)
    places = [
        (round(20 + across * place), round(height - 22 - (height - 40) * step.open / most), step)
        for place, step in enumerate(told)
    ]
    words = ", ".join(f"{step.open} at {step.point.version}" for step in told)
    dots = [(x, y, step.point.version.rpartition("-")[2], step.open) for x, y, step in places]
    return CycleChart(width, height, " ".join(f"{x},{y}" for x, y, _ in places), dots, f"Open regressions: {words}")
