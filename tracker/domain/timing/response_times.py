"""How reports went: times to a first response, a candidate fix and a landing, and false alarms, by groups. Pure.

They help to plan work: nothing here is grouped by author.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from tracker.domain.events import CLOSED, State, Verdict

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
    rows = [each for each in courses if each.verdict == Verdict.REGRESSION]
    waits = _waits(rows, lambda each: each.responded_at)
    ended = [each for each in rows if each.state in CLOSED or each.state in _FALSE]
    return Group(
        name=name,
        response=_times(rows, waits),
        candidate=_times(rows, _waits(rows, lambda each: each.candidate_at)),
        landing=_times(rows, _waits(rows, lambda each: each.landed_at)),
        ended=len(ended),
        false=sum(each.state in _FALSE for each in ended),
        within=[sum(_ZERO < wait <= timedelta(days=days) for wait in waits) for days in WITHIN],
    )


def by(courses: Iterable[Course], name_of: Callable[[Course], str], most: int = 30) -> list[Group]:
    """Return the statistics by a name, those with the most regressions first; without a name they are left out."""
    named: dict[str, list[Course]] = defaultdict(list)
    for each in courses:
        if name := name_of(each):
            named[name].append(each)
    found = [group(name, rows) for name, rows in named.items()]
    return sorted((each for each in found if each.response.of), key=lambda each: (-each.response.of, each.name))[:most]


def _waits(rows: Iterable[Course], until: Callable[[Course], datetime | None]) -> list[timedelta]:
    """Return the times to something, of the reports that got there."""
    waits = (at - each.reported_at for each in rows if each.reported_at and (at := until(each)))
    return [wait for wait in waits if wait >= _ZERO]


def _times(rows: Sequence[Course], waits: Sequence[timedelta]) -> Times:
    """Return the statistics. A table that was imported gives its own date for everything, which says no time."""
    known = sorted(wait for wait in waits if wait)
    if not known:
        return Times(len(waits), len(rows))
    middle = timedelta(seconds=median(each.total_seconds() for each in known))
    return Times(len(waits), len(rows), len(known), middle, known[(len(known) * 9 - 1) // 10])
