"""What a curve shows once the changes that were reported on it are taken into account. Pure.

A bisection measures its culprit, which the builds after it may not hold yet: it is merged later, or never. So the bad
side of a report's own measurement is not part of the curve's history, and a good build after it proves no fix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from tracker.domain.curves.builds import Build
from tracker.domain.curves.noise import CurveNoise, noise_of
from tracker.domain.statistics.change_points import AFTER, ChangePoint, change_points

_BACK = 0.75  # of the distance to the old level; a curve that comes back less far has not recovered
_MANY = 2.0  # times the noise; of a smaller change nothing can be said


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """The change that a report measured here. `source`: of its own points, "result 12"."""

    commit: str
    old: float
    new: float
    source: str

    def back(self, level: float) -> float:
        """Return how far a level is from the new one to the old one: 0 on the new level, 1 on the old one."""
        return (level - self.new) / (self.old - self.new)

    def is_bad(self, level: float) -> bool:
        return self.back(level) < 0.5


@dataclass(frozen=True, slots=True)
class CurveReading:
    """`builds`: all of them; `history`: without the bad sides of reports. `changes` and `cuts` are places in the
    history: the changes that were found, and all places where its level moved.
    """

    builds: Sequence[Build]
    history: Sequence[Build]
    changes: Sequence[ChangePoint]
    cuts: Sequence[int]
    noise: CurveNoise | None

    def place_of(self, commit: str, measured_at: datetime | None = None) -> int | None:
        """Return the place in the history from which on a commit may be contained; None if it was not measured.

        `measured_at`: of a commit that was measured, but is not on the curve yet.
        """
        at = _date_of(self.builds, commit) or measured_at
        return None if at is None else _first_since(self.history, at)


@dataclass(frozen=True, slots=True)
class Undone:
    """The change that undid a reported one, to stay, and the level that the culprit had led to."""

    change: ChangePoint
    bad: float


def read_curve(builds: Sequence[Build], reported: Sequence[ReportedChange]) -> CurveReading:
    """Return the history of a curve, its changes and its noise."""
    by_source: dict[str, list[ReportedChange]] = {}
    for each in reported:
        if each.old != each.new:
            by_source.setdefault(each.source, []).append(each)
    history = [build for build in builds if not _is_bad_side(build, by_source)]
    changes = change_points([build.level for build in history])
    landings = [_landing(builds, history, each) for own in by_source.values() for each in own]
    cuts = sorted({*(each.index for each in changes), *(each for each in landings if each is not None)})
    return CurveReading(builds, history, changes, cuts, noise_of(history, cuts))


def undone(reading: CurveReading, reported: ReportedChange) -> Undone | None:
    """Return the change that undid a reported one; None as long as the curve does not hold it, or is not back to stay.

    The curve must have been on the bad level after the culprit, and its last change must have brought it back.
    """
    start = reading.place_of(reported.commit)
    noise = (reading.noise.pct if reading.noise else None) or 0.0
    if start is None or abs(reported.new - reported.old) * 100 <= _MANY * noise * abs(reported.old):
        return None
    bad: float | None = None
    found: Undone | None = None
    later = [each for each in reading.changes if each.index >= start]
    ends = [*(each.index for each in later), len(reading.history)]
    first = [build.level for build in reading.history[start : ends[0]][:AFTER]]
    if first and reported.is_bad(median(first)):
        bad = median(first)
    for change in later:
        if reported.is_bad(change.new):
            bad, found = change.new if bad is None else bad, None
        elif bad is not None and reported.back(change.new) >= _BACK:
            found = found or Undone(change, bad)
        else:
            found = None
    return found


def _is_bad_side(build: Build, by_source: dict[str, list[ReportedChange]]) -> bool:
    """Whether only reports' own measurements have this build, on its bad side."""
    own = [by_source.get(source) for source in build.sources]
    return all(own) and any(each.is_bad(build.level) for changes in own if changes for each in changes)


def _landing(builds: Sequence[Build], history: Sequence[Build], reported: ReportedChange) -> int | None:
    """Return the place where the builds after a culprit begin to hold it; None if those measured first don't."""
    at = _date_of(builds, reported.commit)
    if at is None:
        return None
    start = _first_since(history, at)
    following = [build.level for build in history[start : start + AFTER]]
    if not following or not reported.is_bad(median(following)):
        return None
    return next((start + n for n, level in enumerate(following) if reported.is_bad(level)), None)


def _date_of(builds: Sequence[Build], commit: str) -> datetime | None:
    return next((build.at for build in builds if build.name == commit), None)


def _first_since(history: Sequence[Build], at: datetime) -> int:
    return next((place for place, build in enumerate(history) if build.at >= at), len(history))
