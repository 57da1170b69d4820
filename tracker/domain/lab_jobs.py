"""What the lab owes: requests that wait for it, until when, and the jobs and results they lead to. Pure.

A report that waits for the lab has requests: to test a patch, measure a proposed fix, answer a question or a doubt.
They follow from its events since it began to wait, the newest of each kind. A candidate fix that came with a request
to test it is that request; a question from before the last candidate is answered by measuring that.

A job is a request for a test until a runner has handed in a result: measured, or why not. A result has samples
without the patch (old) and with it (new), as grading takes them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from tracker.domain import text
from tracker.domain.deadlines import after_working_days
from tracker.domain.events import JOB, Awaited, EventData, EventKind, Verdict
from tracker.domain.report_state import effective_events, fold
from tracker.domain.statistics import SampleSummary, change_pct, summarise

# --- Jobs and their results ---


class JobState(StrEnum):
    """waiting → claimed → done; or withdrawn, when the report does not wait for it any more."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    DONE = "done"
    WITHDRAWN = "withdrawn"


UNFINISHED = (JobState.WAITING, JobState.CLAIMED)


class JobOutcome(StrEnum):
    """How a job ended."""

    MEASURED = "measured"
    NOT_APPLIED = "does-not-apply"
    NOT_BUILT = "does-not-build"
    NOT_BOOTED = "does-not-boot"
    NOT_RUN = "test-fails"
    CANCELLED = "cancelled"  # by a person here


SENTENCES = {
    JobOutcome.NOT_APPLIED: "it does not apply to {base}",
    JobOutcome.NOT_BUILT: "{base} does not build with it",
    JobOutcome.NOT_BOOTED: "{base} does not boot with it",
    JobOutcome.NOT_RUN: "the test fails on {base} with it",
    JobOutcome.CANCELLED: "somebody at the lab cancelled the test",
}


@dataclass(frozen=True, slots=True)
class MeasuredMetric:
    """One metric of a job's result: the samples without the patch (old) and with it (new), as grading takes them."""

    name: str
    old_samples: tuple[float, ...]
    new_samples: tuple[float, ...]

    @property
    def old(self) -> SampleSummary:
        return summarise(self.old_samples)

    @property
    def new(self) -> SampleSummary:
        return summarise(self.new_samples)

    @property
    def change(self) -> float | None:
        return change_pct(self.old.mean, self.new.mean)

    def __str__(self) -> str:
        change = "" if self.change is None else f" ({text.signed_pct(self.change)})"
        means = f"{text.number(self.old.mean)} → {text.number(self.new.mean)}"
        return f"{self.name}: {means}{change}, {len(self.old_samples)} + {len(self.new_samples)} runs"


def metrics_of(result: Mapping[str, Any]) -> tuple[MeasuredMetric, ...]:
    """Return what a result says (perf-job-result/1, checked against its schema); none if nothing was measured."""
    return tuple(
        MeasuredMetric(row["metric"], tuple(map(float, row["without"])), tuple(map(float, row["with"])))
        for row in result.get("measurements", ())
    )


def measured_metrics(payload: str) -> tuple[MeasuredMetric, ...]:
    """Return what a stored result says."""
    return metrics_of(json.loads(payload)) if payload else ()


# --- Requests that wait ---


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
class PendingRequest:
    """A request: what, since when, until when, and the event that says so."""

    request: Request
    event: EventData
    due_at: datetime

    def is_overdue(self, now: datetime) -> bool:
        return now > self.due_at


def requests_pending(verdict: Verdict, events: Iterable[EventData]) -> list[PendingRequest]:
    """Return what the lab owes in a report: every request for a test since the report began to wait for the lab, but
    those whose own job has ended; and of the other kinds the newest, while it waits.

    A candidate fix that came with a request to test it, or is a part of the series that somebody asks to test, is that
    request; a question from before the last candidate is answered by measuring that.
    """
    ordered = sorted(effective_events(list(events)), key=EventData.order)
    waits_since = _since(verdict, ordered)
    newest = {_REQUESTS[event.kind]: event for event in waits_since if event.kind in _REQUESTS}
    newest.pop(Request.TEST, None)
    # One job's end says nothing of the others.
    asked = _since(verdict, [event for event in ordered if not _is_of_job(event)])
    tests = [event for event in asked if event.kind is EventKind.TEST_ASKED]
    fix = newest.get(Request.MEASURE)
    if fix and any(_is_about(test, fix) for test in tests):
        del newest[Request.MEASURE]
    tested = [*tests, *([fix] if fix else [])]
    for kind in (Request.QUESTION, Request.DOUBT):
        if (question := newest.get(kind)) and any(_is_answered_by(question, other) for other in tested):
            del newest[kind]
    requests = [*newest.items(), *((Request.TEST, test) for test in _unanswered(tests, ordered))]
    pending_requests = [
        PendingRequest(request, event, after_working_days(event.occurred_at, WORKING_DAYS[request]))
        for request, event in requests
    ]
    return sorted(pending_requests, key=lambda pending: (pending.due_at, pending.request))


def _since(verdict: Verdict, ordered: Sequence[EventData]) -> Sequence[EventData]:
    """Return the last of some events, during which the report has waited for the lab."""
    start = len(ordered)
    while start and fold(verdict, ordered[:start]).awaited is Awaited.REPORTER:
        start -= 1
    return ordered[start:]


def _is_about(test: EventData, fix: EventData) -> bool:
    """Whether a test is asked of a candidate fix, in its mail, in an answer to it, or in its cover letter."""
    pairs = (test.message_id, fix.message_id), (test.message_id, fix.in_reply_to), (test.in_reply_to, fix.message_id)
    return any(one and one == other for one, other in pairs)  # a fix recorded on a page has no mail


def _is_answered_by(question: EventData, test: EventData) -> bool:
    """Whether a test answers a question: it was asked for later, or in the same mail."""
    same = bool(question.message_id) and question.message_id == test.message_id
    return same or question.order() < test.order()


def _is_of_job(event: EventData) -> bool:
    return event.result.startswith(JOB)


def _unanswered(tests: Sequence[EventData], ordered: Sequence[EventData]) -> list[EventData]:
    """Return the requests whose jobs have not ended: a job's event answers the mail that asked or that has the patch,
    else the request that waited longest.
    """
    left = list(tests)
    for ended in filter(_is_of_job, ordered):
        earlier = [test for test in left if test.order() < ended.order()]
        named = [
            test for test in earlier if ended.in_reply_to and ended.in_reply_to in (test.message_id, test.in_reply_to)
        ]
        if answered := next(iter(named or earlier), None):
            left.remove(answered)
    return left
