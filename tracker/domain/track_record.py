"""Statistics over the reports of a subsystem, machine, metric or author: replies, false alarms, noise. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from tracker.domain import versions
from tracker.domain.events import CLOSED, OPEN, State, Verdict

FALSE = frozenset({State.INVALID, State.DISPUTED})


@dataclass(frozen=True, slots=True)
class Past:
    """The columns of a report that the statistics need."""

    release: str
    state: str
    verdict: str
    reported_at: datetime | None
    responded_at: datetime | None
    noise_pct: float | None


@dataclass(slots=True)
class RecordTally:
    """Counts over some reports. `answers`: times from a regression's report to the author's or a maintainer's
    first reply, of those `replied` to; a table that was imported gives its own date for both, so it says no time.
    """

    name: str
    reports: int = 0
    regressions: int = 0
    improvements: int = 0
    open: int = 0
    fixed: int = 0
    ended: int = 0
    false: int = 0
    replied: int = 0
    answers: list[timedelta] = field(default_factory=list)
    noises: list[float] = field(default_factory=list)

    def add(self, past: Past) -> None:
        self.reports += 1
        self.regressions += past.verdict == Verdict.REGRESSION
        self.improvements += past.verdict == Verdict.IMPROVEMENT
        self.open += past.state in OPEN
        self.fixed += past.state == State.FIXED
        # A disputed report counts as settled even if it is still open.
        self.ended += past.verdict != Verdict.IMPROVEMENT and (past.state in CLOSED or past.state in FALSE)
        self.false += past.state in FALSE
        waited = past.responded_at - past.reported_at if past.reported_at and past.responded_at else None
        if waited is not None and waited >= timedelta(0) and past.verdict == Verdict.REGRESSION:
            self.replied += 1
            self.answers += [waited] if waited else []
        if past.noise_pct is not None:
            self.noises.append(past.noise_pct)

    @property
    def answer(self) -> timedelta | None:
        """The median time to the first reply."""
        return timedelta(seconds=median(each.total_seconds() for each in self.answers)) if self.answers else None

    @property
    def slow_answer(self) -> timedelta | None:
        """The 90th percentile of the time to the first reply."""
        return sorted(self.answers)[(len(self.answers) * 9 - 1) // 10] if self.answers else None

    @property
    def false_pct(self) -> float | None:
        """The share of settled reports that are invalid or disputed, in per cent."""
        return 100 * self.false / self.ended if self.ended else None

    @property
    def noise(self) -> float | None:
        """The median spread of the headline findings, in per cent."""
        return median(self.noises) if self.noises else None


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """The totals, and the counts by release, newest first."""

    total: RecordTally
    by_release: Sequence[RecordTally]


def record(past: Iterable[Past]) -> TrackRecord:
    """Return the statistics over these reports."""
    total, releases = RecordTally(""), dict[str, RecordTally]()
    for each in past:
        total.add(each)
        releases.setdefault(each.release, RecordTally(each.release)).add(each)
    return TrackRecord(total, sorted(releases.values(), key=lambda each: _number(each.name), reverse=True))


def _number(version: str) -> int:
    found = versions.parse(version)
    return found.number if found else 0
