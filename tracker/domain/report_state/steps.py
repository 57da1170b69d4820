"""The table of the fold: which event moves a report from which states to which, and who is awaited then."""

from __future__ import annotations

from dataclasses import dataclass

from tracker.domain.events import CLOSED, OPEN, Awaited, EventKind, State


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the fold: the states in which an event moves a report, the new state, and who is awaited then.

    `to` None leads back to the state that the report would have without any outcome.
    """

    within: frozenset[State]
    to: State | None
    awaits: Awaited


TALK = frozenset({State.NO_RESPONSE, State.RESPONDED, State.NEEDS_INFO, State.DISPUTED})
CANDIDATE = frozenset({State.FIX_PROPOSED, State.FIX_CONFIRMED})
BEFORE_FIX = TALK | {State.WORKING}
# An improvement needs no action unless someone acts on it.
UNSETTLED = OPEN | {State.NO_ACTION}

STEPS: dict[EventKind, Step] = {
    EventKind.RESPONDED: Step(frozenset({State.NO_RESPONSE}), State.RESPONDED, Awaited.AUTHOR),
    EventKind.WORKING: Step(BEFORE_FIX, State.WORKING, Awaited.AUTHOR),
    EventKind.ASKED: Step(BEFORE_FIX, State.NEEDS_INFO, Awaited.REPORTER),
    EventKind.ANSWERED: Step(frozenset({State.NEEDS_INFO}), State.RESPONDED, Awaited.AUTHOR),
    EventKind.DISPUTED: Step(BEFORE_FIX, State.DISPUTED, Awaited.REPORTER),
    # A candidate fix waits for the lab to measure it; a confirmed one waits for its author to post it.
    EventKind.FIX_PROPOSED: Step(BEFORE_FIX | CANDIDATE | {State.NO_ACTION}, State.FIX_PROPOSED, Awaited.REPORTER),
    # A reporter who was asked to test something, and says that it does not help, has answered.
    EventKind.FIX_FAILED: Step(CANDIDATE | {State.NEEDS_INFO}, None, Awaited.AUTHOR),
    EventKind.FIX_CONFIRMED: Step(BEFORE_FIX | CANDIDATE | {State.NO_ACTION}, State.FIX_CONFIRMED, Awaited.AUTHOR),
    EventKind.FIX_QUEUED: Step(UNSETTLED, State.FIX_QUEUED, Awaited.MAINTAINER),
    EventKind.FIX_MERGED: Step(UNSETTLED, State.FIX_QUEUED, Awaited.MAINTAINER),
    EventKind.FIX_LANDED: Step(frozenset(State), State.FIXED, Awaited.NOBODY),
    EventKind.FIX_GONE: Step(frozenset({State.FIX_QUEUED}), State.FIX_PROPOSED, Awaited.AUTHOR),
    EventKind.FIX_REVERTED: Step(frozenset({State.FIX_QUEUED, State.FIXED, State.DROPPED}), None, Awaited.AUTHOR),
    EventKind.FIX_WITHDRAWN: Step(CANDIDATE | {State.FIX_QUEUED, State.FIXED}, None, Awaited.AUTHOR),
    # Measured, not said: it counts after the landing, too.
    EventKind.FIX_WITHOUT_EFFECT: Step(CANDIDATE | {State.FIX_QUEUED, State.FIXED}, None, Awaited.AUTHOR),
    EventKind.STILL_THERE: Step(frozenset({State.DISAPPEARED}), None, Awaited.AUTHOR),
    EventKind.DROPPED: Step(UNSETTLED, State.DROPPED, Awaited.NOBODY),
    EventKind.EXPECTED: Step(UNSETTLED | {State.DROPPED}, State.EXPECTED, Awaited.NOBODY),
    EventKind.INVALID: Step(UNSETTLED | {State.EXPECTED}, State.INVALID, Awaited.NOBODY),
    EventKind.DUPLICATE: Step(UNSETTLED, State.DUPLICATE, Awaited.NOBODY),
    EventKind.UNDUPLICATED: Step(frozenset({State.DUPLICATE}), None, Awaited.AUTHOR),
    EventKind.DISAPPEARED: Step(UNSETTLED, State.DISAPPEARED, Awaited.NOBODY),
    EventKind.REOPENED: Step(CLOSED - {State.NO_ACTION}, None, Awaited.AUTHOR),
}
