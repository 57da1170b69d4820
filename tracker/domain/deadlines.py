"""How long is too long: until when a report may wait for developers, and what may be closed by now. Pure.

A report's clock says what it waits for (a first response, a candidate fix, its landing), from whom, since when, and
until when silence is usual. The time is counted in working days from the last word; serious reports have less, and
near a release all of it is halved. There is no clock for what waits for the lab, or is no regression. The defaults
follow the kernel's Documentation/process/handling-regressions.rst, which asks for fixes of regressions in two or
three days if they are severe, within two weeks for most, and faster as a release comes near.

What may be closed by now (a released improvement; a culprit that left linux-next three months ago and was never
merged) becomes a suggestion with its reason: it waits for a person, and can be undone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from tracker.domain.events import OPEN, Awaited, EventData, EventKind, State, Verdict
from tracker.domain.report_state import ReportState, effective_events, fold

# --- The clock of a report ---

DAY = timedelta(days=1)


class Stage(StrEnum):
    """What a report waits for."""

    RESPONSE = "first response"
    FIX = "candidate fix"
    LANDING = "landing"


@dataclass(frozen=True, slots=True)
class DeadlinePolicy:
    """Working days for each stage; `serious_days` for all stages of a serious report. Near a release, all are halved.

    `off`: days of each year, as (month, day), on which nobody is expected to work, like weekends.
    """

    response_days: int = 5
    fix_days: int = 10
    landing_days: int = 10
    serious_days: int = 3
    off: tuple[tuple[int, int], ...] = (*((12, day) for day in range(24, 32)), (1, 1))

    def days(self, stage: Stage, *, serious: bool, near_release: bool) -> int:
        """Return the working days for a stage: one at least."""
        usual = {Stage.RESPONSE: self.response_days, Stage.FIX: self.fix_days, Stage.LANDING: self.landing_days}[stage]
        days = min(usual, self.serious_days) if serious else usual
        return max(1, days // 2 if near_release else days)

    def is_working_day(self, day: date) -> bool:
        return day.weekday() < 5 and (day.month, day.day) not in self.off


DEFAULT = DeadlinePolicy()


@dataclass(frozen=True, slots=True)
class ReportClock:
    """`since`: the last word, from when the days are counted; `due_at`: until when silence is usual."""

    stage: Stage
    awaited: Awaited
    since: datetime
    due_at: datetime

    def is_overdue(self, now: datetime) -> bool:
        return now > self.due_at


def stage_of(state: State, awaited: Awaited) -> Stage | None:
    """Return what a report waits for from developers; None if it is closed, or if the lab owes an answer."""
    if state not in OPEN or awaited not in (Awaited.AUTHOR, Awaited.MAINTAINER):
        return None
    if state is State.NO_RESPONSE:
        return Stage.RESPONSE
    return Stage.LANDING if state in (State.FIX_PROPOSED, State.FIX_CONFIRMED, State.FIX_QUEUED) else Stage.FIX


def report_clock(
    report: ReportState,
    last_word: Iterable[datetime | None],
    *,
    serious: bool,
    near_release: bool,
    policy: DeadlinePolicy = DEFAULT,
) -> ReportClock | None:
    """Return the clock of a report; None if nothing is awaited from developers, and for what is not a regression.

    `last_word`: when somebody last wrote or did something about it; the latest counts.
    """
    stage = stage_of(report.state, report.awaited)
    since = max((moment for moment in last_word if moment), default=None)
    if stage is None or since is None or report.verdict is not Verdict.REGRESSION:
        return None
    days = policy.days(stage, serious=serious or bool(report.blocks), near_release=near_release)
    return ReportClock(stage, report.awaited, since, after_working_days(since, days, policy))


def after_working_days(since: datetime, days: int, policy: DeadlinePolicy = DEFAULT) -> datetime:
    """Return the same time of day so many working days later, in UTC; what begins on a day off begins at the start of
    the next working day.

    >>> from datetime import UTC
    >>> after_working_days(datetime(2026, 11, 20, 15, tzinfo=UTC), 1)  # a Friday
    datetime.datetime(2026, 11, 23, 15, 0, tzinfo=datetime.timezone.utc)
    """
    at = since
    while days > 0 and not policy.is_working_day(at.date()):
        at = (at + DAY).replace(hour=0, minute=0, second=0, microsecond=0)
    while days > 0:
        at += DAY
        days -= policy.is_working_day(at.date())
    return at


def before_working_days(until: datetime, days: int, policy: DeadlinePolicy = DEFAULT) -> datetime:
    """Return the latest time that is so many working days and more before a moment, in UTC: what began then is due.

    >>> from datetime import UTC
    >>> before_working_days(datetime(2026, 11, 23, 15, tzinfo=UTC), 1)  # a Monday
    datetime.datetime(2026, 11, 20, 15, 0, tzinfo=datetime.timezone.utc)
    """
    at = until
    if days > 0 and not policy.is_working_day(at.date()):  # nothing becomes due on a day off
        while not policy.is_working_day(at.date()):
            at -= DAY
        at = at.replace(hour=23, minute=59, second=59, microsecond=999_999)
    while days > 0:
        at -= DAY
        days -= policy.is_working_day(at.date())
    return at


# --- What may be closed ---

GONE_FOR = timedelta(days=90)  # after which a culprit that left next is not expected any more


@dataclass(frozen=True, slots=True)
class Closing:
    """An event that would close a report, and why. `since`: from when on the reason holds; it names the suggestion."""

    kind: EventKind
    reason: str
    since: datetime

    @property
    def key(self) -> str:
        return f"{self.kind}:closing-{self.since:%Y%m%d}"


def closing_of(
    verdict: Verdict, events: Iterable[EventData], released_at: datetime | None, now: datetime
) -> Closing | None:
    """Return what would close a report by now; None if nothing would, or if it is closed.

    `released_at`: when the release that it belongs to was made.
    """
    rows = effective_events(list(events))
    state = fold(verdict, rows)
    if state.state not in OPEN:
        return None
    if verdict is Verdict.IMPROVEMENT:
        if released_at is None or released_at > now:
            return None
        return Closing(EventKind.EXPECTED, f"an improvement, released on {released_at:%Y-%m-%d}", released_at)
    # The closing of a culprit that left linux-next and never reached the mainline
    if any(event.kind in (EventKind.MERGED, EventKind.LANDED) for event in rows):
        return None
    moved = [event for event in rows if event.kind in (EventKind.IN_NEXT, EventKind.GONE)]
    last = max(moved, key=EventData.order, default=None)
    if last is None or last.kind is not EventKind.GONE or now - last.occurred_at < GONE_FOR:
        return None
    reason = f"gone from next since {last.occurred_at:%Y-%m-%d}, and never merged"
    return Closing(EventKind.DROPPED, reason, last.occurred_at)
