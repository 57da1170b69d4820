"""What the lab owes in a report: the request that waits for it, and until when it should be answered. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tracker.domain.deadlines import after_working_days
from tracker.domain.events import Awaited, EventData, EventKind, Verdict
from tracker.domain.report_state.fold import effective_events, fold


class Request(StrEnum):
    """What somebody wants from the lab."""

    TEST = "test a patch"
    MEASURE = "measure the proposed fix"
    QUESTION = "answer a question"
    DOUBT = "answer a doubt"


_REQUESTS = {
    EventKind.TEST_ASKED: Request.TEST,
    EventKind.FIX_PROPOSED: Request.MEASURE,
    EventKind.ASKED: Request.QUESTION,
    EventKind.DISPUTED: Request.DOUBT,
}
WORKING_DAYS = {Request.TEST: 5, Request.MEASURE: 5, Request.QUESTION: 2, Request.DOUBT: 2}


@dataclass(frozen=True, slots=True)
class Debt:
    """A request: what, since when, until when, and the event that says so."""

    request: Request
    event: EventData
    due_at: datetime

    def is_overdue(self, now: datetime) -> bool:
        return now > self.due_at


def debt_of(verdict: Verdict, events: Sequence[EventData]) -> Debt | None:
    """Return what the lab owes in a report: the newest request, if the report waits for the lab."""
    every = list(events)
    if fold(verdict, every).awaited is not Awaited.REPORTER:
        return None
    requests = [each for each in effective_events(every) if each.kind in _REQUESTS]
    if not requests:
        return None
    newest = max(requests, key=EventData.order)
    request = _REQUESTS[newest.kind]
    return Debt(request, newest, after_working_days(newest.occurred_at, WORKING_DAYS[request]))
