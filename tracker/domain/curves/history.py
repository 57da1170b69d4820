"""What a curve says about one commit: how long it was stable before it, and whether its change was undone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from tracker.domain import versions
from tracker.domain.curves.builds import Build
from tracker.domain.curves.noise import LEAST_BUILDS
from tracker.domain.statistics.change_points import AFTER, BEFORE, ChangePoint

_CLOSED = 0.75  # of the distance to the old level; a curve that comes back less far has not recovered


@dataclass(frozen=True, slots=True)
class StableHistory:
    """The builds before a commit, from the last change of the level on. `modes_pct`: what two modes are apart."""

    since: str
    at: datetime
    builds: int
    runs: int
    modes_pct: float | None = None

    @property
    def text(self) -> str:
        """ "stable since v6.9, 41 builds"; a date instead of a sha.

        >>> from datetime import UTC
        >>> StableHistory("v6.9", datetime(2026, 5, 12, tzinfo=UTC), 41, 220).text
        'stable since v6.9, 41 builds'
        """
        since = self.since if versions.parse(self.since) else f"{self.at:%Y-%m-%d}"
        return f"stable since {since}, {self.builds} builds"


@dataclass(frozen=True, slots=True)
class Undone:
    """The change that undid another one, and the levels before that one and with it."""

    change: ChangePoint
    before: float
    after: float


def history_before(
    builds: Sequence[Build], changes: Sequence[int], commit: str, modes_pct: float | None = None
) -> StableHistory | None:
    """Return how long a curve was stable before a commit; None if it was not measured, or too little before it.

    `changes`: the places of first builds on a new level.
    """
    place = _place(builds, commit)
    if place is None:
        return None
    start = max((each for each in changes if each < place), default=0)
    stable = builds[start:place]
    if len({each.at for each in stable}) < LEAST_BUILDS:
        return None
    first = stable[0]
    return StableHistory(first.name, first.at, len(stable), sum(len(each.samples) for each in stable), modes_pct)


def recovery_of(builds: Sequence[Build], changes: Sequence[ChangePoint], commit: str) -> Undone | None:
    """Return the change that undid the change of a commit, to stay; None if there is none so far.

    The last change must have closed most of the distance between the levels before and at the commit.
    """
    place = _place(builds, commit)
    later = [each for each in changes if place is not None and each.index > place]
    if not place or not later:
        return None
    before = median(each.level for each in builds[max(0, place - BEFORE) : place])
    until = later[0].index
    after = median(each.level for each in builds[place : min(place + AFTER, until)])

    def is_back(level: float) -> bool:
        return (level - after) * (before - after) >= _CLOSED * (before - after) ** 2

    if before == after or not is_back(later[-1].new):
        return None
    first = len(later) - 1
    while first and is_back(later[first - 1].new):
        first -= 1
    return Undone(later[first], before, after)


def _place(builds: Sequence[Build], commit: str) -> int | None:
    return next((place for place, build in enumerate(builds) if build.name == commit), None)
