"""Decide who is reminded of which reports, and when: gently, only on real silence, and rarely. Pure.

A person gets one reminder a week at most, over all reports, and a report is in two at most. A reminder names all
reports of its person that are due; it is sent in the thread of the most urgent one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.compose.policy.action import Action
from tracker.domain.events import State
from tracker.domain.timing.deadlines import DEFAULT, DeadlinePolicy, ReportClock

# Where a reminder would be wrong: who doubts a report or has asked is waiting for the lab.
_NEVER = frozenset({State.DISPUTED, State.NEEDS_INFO, State.EXPECTED})


@dataclass(frozen=True, slots=True)
class ReminderPolicy:
    """`action`: what happens to reminders; HOLD: none are composed. `at_least_pct`: of smaller changes nobody is
    reminded. `most`: reminders in a report's life; `apart`: between two of one report, and between two to one person.
    """

    action: Action = Action.APPROVE
    deadlines: DeadlinePolicy = DEFAULT
    at_least_pct: float = 5.0
    serious_pct: float = 30.0
    most: int = 2
    apart: timedelta = timedelta(days=14)
    per_person: timedelta = timedelta(days=7)
    oldest: timedelta = timedelta(days=180)  # reports that were mailed longer ago are left in peace


REMINDERS = ReminderPolicy()


@dataclass(frozen=True, slots=True)
class QuietReport:
    """What decides about a report. `person`: who is awaited; `reminded`: when it was in a reminder before; `silenced`:
    why there must be none ("" if nothing is known).
    """

    key: int
    person: str
    state: State
    clock: ReportClock | None
    change_pct: float | None
    urgency: int
    reminded: tuple[datetime, ...] = ()
    silenced: str = ""


@dataclass(frozen=True, slots=True)
class ReminderBatch:
    """One mail to one person: the most urgent report first, in whose thread it is sent."""

    person: str
    reports: Sequence[QuietReport]


def is_due(report: QuietReport, policy: ReminderPolicy, now: datetime) -> bool:
    """Return whether its person may be reminded of a report now."""
    if report.silenced or not report.person or report.state in _NEVER or report.clock is None:
        return False
    if report.change_pct is not None and abs(report.change_pct) < policy.at_least_pct:
        return False
    last = max(report.reminded, default=None)
    rested = last is None or now - last >= policy.apart
    return len(report.reminded) < policy.most and rested and report.clock.is_overdue(now)


def batches(
    reports: Iterable[QuietReport], last_reminded: Mapping[str, datetime], policy: ReminderPolicy, now: datetime
) -> list[ReminderBatch]:
    """Return the reminders that are due, those of the most urgent reports first. `last_reminded`: by person."""
    of_person: dict[str, list[QuietReport]] = defaultdict(list)
    for each in reports:
        last = last_reminded.get(each.person)
        if is_due(each, policy, now) and (last is None or now - last >= policy.per_person):
            of_person[each.person].append(each)
    found = [
        ReminderBatch(person, sorted(due, key=lambda each: (-each.urgency, each.key)))
        for person, due in of_person.items()
    ]
    return sorted(found, key=lambda batch: (-batch.reports[0].urgency, batch.person))
