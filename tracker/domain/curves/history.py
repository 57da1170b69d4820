"""How long a curve was stable before a commit, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tracker.domain import versions
from tracker.domain.curves.curve_reading import CurveReading
from tracker.domain.curves.noise import LEAST_BUILDS


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


def history_before(reading: CurveReading, commit: str, measured_at: datetime | None = None) -> StableHistory | None:
    """Return how long a curve was stable before a commit; None if it was not measured, or too little before it.

    `measured_at`: of a commit that was measured, but is not on the curve yet.
    """
    place = reading.place_of(commit, measured_at)
    if place is None:
        return None
    start = max((each for each in reading.cuts if each < place), default=0)
    stable = reading.history[start:place]
    if len({each.at for each in stable}) < LEAST_BUILDS:
        return None
    first = stable[0]
    modes = reading.noise.modes_pct if reading.noise else None
    return StableHistory(first.name, first.at, len(stable), sum(len(each.samples) for each in stable), modes)
