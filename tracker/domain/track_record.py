"""How reports fared: times to a response, a fix and a landing; false alarms and noise. Pure.

They help to plan work: `/statistics/` groups regressions by release, subsystem and the like, and never by author. The
pages of a subsystem, machine, metric or author sum up the reports that they list, in all and by release.

A time counts from the report to the first event of its kind; given are the median and the slow tenth. Reports from an
imported table have its own date for everything: they count as answered, but say no time. A false alarm is an invalid
or disputed report, and its share is taken of the closed or disputed ones: a disputed report counts as settled even if
it is still open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from tracker.domain import versions
from tracker.domain.events import CLOSED, OPEN, State, Verdict

# --- Response times by group ---

WITHIN = (1, 3, 7, 14, 30)  # days
_FALSE = frozenset({State.INVALID, State.DISPUTED})
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Course:
    """What the statistics need of a report. `candidate_at`: when a fix was posted; `landed_at`: when it was fixed."""

    release: str
    subsystem: str
    suite: str
    machine: str
    state: str
    verdict: str
    reported_at: datetime | None
    responded_at: datetime | None = None
    candidate_at: datetime | None = None
    landed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Times of some reports: how many got there, `of` how many, and for how many the time is known; the median and the
    ninth decile, None if none is known.
    """

    number: int
    of: int
    known: int = 0
    median: timedelta | None = None
    slow: timedelta | None = None

    @property
    def pct(self) -> float | None:
        return 100 * self.number / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Group:
    """The statistics of one group of regressions. `within`: how many had a response within each of WITHIN days."""

    name: str
    response: Times
    candidate: Times
    landing: Times
    ended: int
    false: int
    within: Sequence[int]

    @property
    def false_pct(self) -> float | None:
        """Invalid or disputed reports, in per cent of the closed or disputed ones."""
        return 100 * self.false / self.ended if self.ended else None


def group(name: str, courses: Iterable[Course]) -> Group:
    """Return the statistics of regressions."""
    rows = [course for course in courses if course.verdict == Verdict.REGRESSION]
    waits = _waits(rows, lambda course: course.responded_at)
    ended = [course for course in rows if course.state in CLOSED or course.state in _FALSE]
    return Group(
        name=name,
        response=_times(rows, waits),
        candidate=_times(rows, _waits(rows, lambda course: course.candidate_at)),
        landing=_times(rows, _waits(rows, lambda course: course.landed_at)),
        ended=len(ended),
        false=sum(course.state in _FALSE for course in ended),
        within=[sum(_ZERO < wait <= timedelta(days=days) for wait in waits) for days in WITHIN],
    )


def by(courses: Iterable[Course], name_of: Callable[[Course], str], most: int = 30) -> list[Group]:
    """Return the statistics by a name, those with the most regressions first; without a name they are left out."""
    named: dict[str, list[Course]] = defaultdict(list)
    for course in courses:
        if name := name_of(course):
            named[name].append(course)
    groups = [group(name, rows) for name, rows in named.items()]
    return sorted((entry for entry in groups if entry.response.of), key=lambda entry: (-entry.response.of, entry.name))[
        :most
    ]


def _waits(rows: Iterable[Course], until: Callable[[Course], datetime | None]) -> list[timedelta]:
    """Return the times to something, of the reports that got there."""
    waits = (at - course.reported_at for course in rows if course.reported_at and (at := until(course)))
    return [wait for wait in waits if wait >= _ZERO]


def _times(rows: Sequence[Course], waits: Sequence[timedelta]) -> Times:
    """Return the statistics. A table that was imported gives its own date for everything, which says no time."""
    durations = sorted(wait for wait in waits if wait)
    if not durations:
        return Times(len(waits), len(rows))
    middle = timedelta(seconds=median(duration.total_seconds() for duration in durations))
    return Times(len(waits), len(rows), len(durations), middle, durations[(len(durations) * 9 - 1) // 10])


# --- Record of a page's reports ---

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
        return timedelta(seconds=median(wait.total_seconds() for wait in self.answers)) if self.answers else None

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
    for report in past:
        total.add(report)
        releases.setdefault(report.release, RecordTally(report.release)).add(report)
    return TrackRecord(total, sorted(releases.values(), key=lambda tally: _number(tally.name), reverse=True))


def _number(version: str) -> int:
    parsed = versions.parse(version)
    return parsed.number if parsed else 0
