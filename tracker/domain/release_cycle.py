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


def upcoming(
    version: str, opened_at: datetime | None, tagged: Mapping[int, datetime], now: datetime
) -> CyclePoint | None:
    """Return the next -rc of a running cycle, a week after the last one; None if it can't be predicted."""
    if tagged:
        last = max(tagged)
        name = f"{version}-rc{last + 1}" if last < USUAL - 1 else f"{version} or {version}-rc{last + 1}"
        at = tagged[last] + WEEK
    elif opened_at:
        name, at = f"{version}-rc1", opened_at + MERGE_WINDOW
    else:
        return None
    return CyclePoint(name, at) if now - at < 2 * WEEK else None


def steps(found: Sequence[CyclePoint], spans: Iterable[ReportSpan]) -> list[CycleStep]:
    """Return the burn-down of regressions, point by point."""
    counted = [span for span in spans if span.is_regression]
    burn_down = []
    for index, point in enumerate(found):
        before = found[index - 1].at if index else None
        burn_down.append(
            CycleStep(
                point,
                sum(_within(span.reported_at, before, point.at) for span in counted),
                sum(_within(span.closed_at, before, point.at) for span in counted),
                sum(_was_open(span, point.at) for span in counted),
            )
        )
    return burn_down


def _within(moment: datetime | None, after: datetime | None, until: datetime) -> bool:
    return moment is not None and moment <= until and (after is None or moment > after)


def _was_open(span: ReportSpan, at: datetime) -> bool:
    was_reported = span.reported_at is not None and span.reported_at <= at
    return (
        was_reported
        and (span.closed_at is None or span.closed_at > at)
        and (span.is_open or span.closed_at is not None)
    )
