"""How reports fared: times to a response, a fix and a landing; what came of them; false alarms and noise. Pure.

They help to plan work: `/statistics/` groups regressions by release, subsystem and the like, and never by author. The
pages of a subsystem, machine, metric or author sum up the reports that they list, in all and by release.

A time counts from the report to the first event of its kind; given are the median and the slow tenth. Reports from an
imported table have its own date for everything: they count as answered, but say no time. A false alarm is an invalid
or disputed report, and its share is taken of the closed or disputed ones: a disputed report counts as settled even if
it is still open. Improvements are not alarms, and count as neither.

Its precision says whether a lab is worth reading: how many of the regressions that people settled were real, since they
were fixed, reverted or accepted as expected. What disappeared or was a duplicate settles nothing. Shares have E. B.
Wilson's interval (J. Am. Stat. Assoc. 22, 1927), which holds for few reports, too; medians have that of the order
statistics (W. J. Conover, Practical Nonparametric Statistics, section 3.2).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from tracker.domain import versions
from tracker.domain.events import CLOSED, OPEN, State, Verdict
from tracker.domain.statistics import Z

# --- Response times by group ---

WITHIN = (1, 3, 7, 14, 30)  # days
_FALSE = frozenset({State.INVALID, State.DISPUTED})
_SETTLED = CLOSED | _FALSE
_REAL = frozenset({State.FIXED, State.DROPPED, State.EXPECTED})
# Somebody takes it for real: it is settled so, or they work on it.
_CONFIRMED = _REAL | {State.WORKING, State.FIX_PROPOSED, State.FIX_CONFIRMED, State.FIX_QUEUED}


FEWEST = 3  # of which a share is given in per cent: of fewer, the counts alone


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some reports, in per cent with its 95% interval; None of fewer than FEWEST, which are no rate."""

    number: int
    of: int

    @property
    def pct(self) -> float | None:
        return 100 * self.number / self.of if self.of >= FEWEST else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """
        >>> [round(end, 1) for end in Share(8, 10).bounds]
        [49.0, 94.3]
        """
        if self.of < FEWEST:
            return None
        share, n = self.number / self.of, self.of
        middle, width = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n * n))
        low, high = (100 * end / (1 + Z**2 / n) for end in (middle - width, middle + width))
        return min(max(0.0, low), 100 * share), max(min(100.0, high), 100 * share)


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
    noise_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Times of some reports: how many got there, `of` how many, and for how many the time is known; the median with its
    95% interval and the ninth decile, None if none is known, or too few for an interval.
    """

    number: int
    of: int
    known: int = 0
    median: timedelta | None = None
    slow: timedelta | None = None
    low: timedelta | None = None
    high: timedelta | None = None

    @property
    def pct(self) -> float | None:
        return Share(self.number, self.of).pct


@dataclass(frozen=True, slots=True)
class Group:
    """The statistics of one group of regressions. `false`: invalid or disputed reports, of the closed or disputed
    ones; `within`: how many had a response within each of WITHIN days; `outcomes`: how many are in each state that
    says what came of them.
    """

    name: str
    response: Times
    candidate: Times
    landing: Times
    false: Share
    within: Sequence[int]
    confirmed: Share
    disputed: Share
    precision: Share
    outcomes: Mapping[State, int]


# The states that say what came of a report, in this order.
OUTCOMES = (
    State.FIXED, State.DROPPED, State.EXPECTED, State.DISAPPEARED, State.DUPLICATE, State.DISPUTED, State.INVALID,
)  # fmt: skip


def group(name: str, courses: Iterable[Course]) -> Group:
    """Return the statistics of regressions."""
    rows = [course for course in courses if course.verdict == Verdict.REGRESSION]
    waits = _waits((course.reported_at, course.responded_at) for course in rows)
    return Group(
        name=name,
        response=_times(waits, len(rows)),
        candidate=_times(_waits((course.reported_at, course.candidate_at) for course in rows), len(rows)),
        landing=_times(_waits((course.reported_at, course.landed_at) for course in rows), len(rows)),
        false=_false_alarms(rows),
        within=[sum(timedelta(0) < wait <= timedelta(days=days) for wait in waits) for days in WITHIN],
        confirmed=Share(sum(course.state in _CONFIRMED for course in rows), len(rows)),
        disputed=Share(sum(course.state in _FALSE for course in rows), len(rows)),
        precision=Share(
            sum(course.state in _REAL for course in rows), sum(course.state in _REAL | _FALSE for course in rows)
        ),
        outcomes={state: count for state in OUTCOMES if (count := sum(course.state == state for course in rows))},
    )


def _false_alarms(rows: Sequence[Course]) -> Share:
    return Share(sum(row.state in _FALSE for row in rows), sum(row.state in _SETTLED for row in rows))


def by(courses: Iterable[Course], name_of: Callable[[Course], str], most: int = 30) -> list[Group]:
    """Return the statistics by a name, those with the most regressions first; without a name they are left out."""
    named: dict[str, list[Course]] = defaultdict(list)
    for course in courses:
        named[name_of(course)].append(course)
    groups = [entry for name, rows in named.items() if name and (entry := group(name, rows)).response.of]
    return sorted(groups, key=lambda entry: (-entry.response.of, entry.name))[:most]


def _waits(spans: Iterable[tuple[datetime | None, datetime | None]]) -> list[timedelta]:
    """Return the times from a report to something, of those that got there: none if it was there before, as the fix of
    a culprit that was reported late.
    """
    return [max(until - since, timedelta(0)) for since, until in spans if since and until]


def _times(waits: Sequence[timedelta], of: int) -> Times:
    """Return the statistics. A table that was imported gives its own date for everything, which says no time."""
    durations = sorted(wait for wait in waits if wait)
    if not durations:
        return Times(len(waits), of)
    middle = timedelta(seconds=median(duration.total_seconds() for duration in durations))
    n = len(durations)
    rank = median_rank(n)
    low, high = (durations[rank - 1], durations[n - rank]) if rank else (None, None)
    return Times(len(waits), of, n, middle, durations[(n * 9 - 1) // 10], low, high)


def median_rank(n: int) -> int:
    """Return the largest rank, counted from 1, that with its counterpart from the end holds the median of what `n`
    values are drawn from with a probability of 95% at least; 0 if there are too few.

    >>> [median_rank(n) for n in (5, 6, 10, 20)]
    [0, 1, 2, 6]
    """
    if n > _MANY:
        return math.floor((n + 1 - Z * math.sqrt(n)) / 2)  # the normal approximation, within a rank
    below, rank = 0, 0
    for place in range(n):
        below += math.comb(n, place)
        if below > 0.025 * 2**n:
            break
        rank = place + 1
    return rank


_MANY = 500


# --- Record of a page's reports ---


@dataclass(frozen=True, slots=True)
class RecordTally:
    """Counts over some reports. `false`: as in Group, improvements aside; `response`: times from a regression's report
    to the author's or a maintainer's first reply; `noise`: the median spread of the headline findings, in per cent.
    """

    name: str
    reports: int
    regressions: int
    improvements: int
    open: int
    fixed: int
    false: Share
    response: Times
    noise: float | None


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """The totals, and the counts by release, newest first."""

    total: RecordTally
    by_release: Sequence[RecordTally]


def record(courses: Iterable[Course]) -> TrackRecord:
    """Return the statistics over these reports."""
    rows = list(courses)
    releases: dict[str, list[Course]] = defaultdict(list)
    for report in rows:
        releases[report.release].append(report)
    newest_first = sorted(releases, key=_number, reverse=True)
    return TrackRecord(_tally("", rows), [_tally(release, releases[release]) for release in newest_first])


def _tally(name: str, rows: Sequence[Course]) -> RecordTally:
    regressions = [report for report in rows if report.verdict == Verdict.REGRESSION]
    alarms = [report for report in rows if report.verdict != Verdict.IMPROVEMENT]
    noises = [report.noise_pct for report in rows if report.noise_pct is not None]
    return RecordTally(
        name=name,
        reports=len(rows),
        regressions=len(regressions),
        improvements=len(rows) - len(alarms),
        open=sum(report.state in OPEN for report in rows),
        fixed=sum(report.state == State.FIXED for report in rows),
        false=_false_alarms(alarms),
        response=_times(_waits((row.reported_at, row.responded_at) for row in regressions), len(regressions)),
        noise=median(noises) if noises else None,
    )


def _number(version: str) -> int:
    parsed = versions.parse(version)
    return parsed.number if parsed else 0
