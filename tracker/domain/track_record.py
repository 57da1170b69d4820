"""How it went with the reports of a subsystem, a machine, a metric or an author: answers, false alarms, noise. Pure."""

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
    """What is needed of one report."""

    release: str
    state: str
    verdict: str
    reported_at: datetime | None
    responded_at: datetime | None
    noise_pct: float | None


@dataclass(slots=True)
class RecordTally:
    """Some reports. Times are from the report to the first answer of the author or a maintainer."""

    name: str
    reports: int = 0
    regressions: int = 0
    improvements: int = 0
    open: int = 0
    fixed: int = 0
    ended: int = 0
    false: int = 0
    answers: list[timedelta] = field(default_factory=list)
    noises: list[float] = field(default_factory=list)

    def add(self, past: Past) -> None:
        self.reports += 1
        self.regressions += past.verdict == Verdict.REGRESSION
        self.improvements += past.verdict == Verdict.IMPROVEMENT
        self.open += past.state in OPEN
        self.fixed += past.state == State.FIXED
        # What was disputed and never settled counts as ended: nobody works on it any more.
        self.ended += past.verdict != Verdict.IMPROVEMENT and (past.state in CLOSED or past.state in FALSE)
        self.false += past.state in FALSE
        if past.reported_at and past.responded_at and past.responded_at >= past.reported_at:
            self.answers.append(past.responded_at - past.reported_at)
        if past.noise_pct is not None:
            self.noises.append(past.noise_pct)

    @property
    def answer(self) -> timedelta | None:
        """The median time to an answer."""
        return timedelta(seconds=median(each.total_seconds() for each in self.answers)) if self.answers else None

    @property
    def slow_answer(self) -> timedelta | None:
        """Nine of ten answers came faster."""
        return sorted(self.answers)[(len(self.answers) * 9 - 1) // 10] if self.answers else None

    @property
    def answered_pct(self) -> float | None:
        return 100 * len(self.answers) / self.regressions if self.regressions else None

    @property
    def false_pct(self) -> float | None:
        """The share of what came to an end that ended invalid or disputed."""
        return 100 * self.false / self.ended if self.ended else None

    @property
    def noise(self) -> float | None:
        """The median spread of the headlines, in per cent."""
        return median(self.noises) if self.noises else None


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """All of them, and release by release, the newest first."""

    whole: RecordTally
    by_release: Sequence[RecordTally]


def record(past: Iterable[Past]) -> TrackRecord:
    """Count them up."""
    whole, releases = RecordTally(""), dict[str, RecordTally]()
    for each in past:
        whole.add(each)
        releases.setdefault(each.release, RecordTally(each.release)).add(each)
    return TrackRecord(whole, sorted(releases.values(), key=lambda each: _number(each.name), reverse=True))


def _number(version: str) -> int:
    found = versions.parse(version)
    return found.number if found else 0
