"""What the lab owes in a report: the request that waits for it, and until when it should be answered. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tracker.domain.events import Awaited, EventData, EventKind, Verdict
from tracker.domain.report_state.fold import effective_events, fold
from tracker.domain.timing.deadlines import after_working_days


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


def debts_of(verdict: Verdict, events: Iterable[EventData]) -> list[Debt]:
    """Return what the lab owes in a report, if the report waits for the lab: of each kind the newest request since it
    began to wait. A candidate fix that came with a request to test it is that request; a question from before the
    last candidate is answered by measuring that.
    """
    waiting = _while_the_lab_is_awaited(verdict, sorted(effective_events(list(events)), key=EventData.order))
    newest = {_REQUESTS[each.kind]: each for each in waiting if each.kind in _REQUESTS}
    test, fix = newest.get(Request.TEST), newest.get(Request.MEASURE)
    if test and fix and (test.message_id == fix.message_id or test.in_reply_to == fix.message_id):
        del newest[Request.MEASURE]
    tested = [each for kind in (Request.TEST, Request.MEASURE) if (each := newest.get(kind))]
    for kind in (Request.QUESTION, Request.DOUBT):
        if (question := newest.get(kind)) and any(question.order() < each.order() for each in tested):
            del newest[kind]
    debts = [
        Debt(request, event, after_working_days(event.occurred_at, WORKING_DAYS[request]))
        for request, event in newest.items()
    ]
    return sorted(debts, key=lambda debt: (debt.due_at, debt.request))


def _while_the_lab_is_awaited(verdict: Verdict, events: Sequence[EventData]) -> Sequence[EventData]:
    """Return the last events of a report that waits for the lab: those since it began to."""
    start = len(events)
    while start and fold(verdict, events[:start]).awaited is Awaited.REPORTER:
        start -= 1
    return events[start:]
