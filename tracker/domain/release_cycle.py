"""The cycle of a release: its candidates, the day of the next, and how many reports were open at each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# Documentation/process/2.Process.rst: the merge window is open for two weeks and ends with -rc1; a candidate follows
# about every week, and the release after six to ten of them.
MERGE_WINDOW = timedelta(days=14)
WEEK = timedelta(days=7)
USUAL = 8  # the last candidate that is reckoned with


@dataclass(frozen=True, slots=True)
class CyclePoint:
    """A candidate, or another moment by its name."""

    version: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ReportSpan:
    """When a report was told and closed, as far as it was; and whether it is open now."""

    reported_at: datetime | None
    closed_at: datetime | None
    is_open: bool
    is_regression: bool


@dataclass(frozen=True, slots=True)
class CycleStep:
    """What happened up to a point since the one before, and what was open then."""

    point: CyclePoint
    new: int
    closed: int
    open: int


def points(version: str, tagged: Mapping[int, datetime]) -> list[CyclePoint]:
    """The candidates of a cycle in their order, as tags tell them."""
    return [CyclePoint(f"{version}-rc{number}", at) for number, at in sorted(tagged.items())]


def upcoming(version: str, began: datetime | None, tagged: Mapping[int, datetime], now: datetime) -> CyclePoint | None:
    """The next candidate of a cycle that goes on, a week after the last; None where nobody can know."""
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
    """The burn-down: regressions alone, point by point."""
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
    """A burn-down as the numbers of an SVG: the line, its points, and what it says in words."""

    width: int
    height: int
    line: str
    dots: Sequence[tuple[int, int, str, int]]  # x, y, version, open
    words: str


def chart(told: Sequence[CycleStep], width: int = 420, height: int = 96) -> CycleChart | None:
    """The open regressions at each point; None where there is no line to draw."""
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
