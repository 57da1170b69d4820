"""The fold: a report's events in their order, one by one, to where the report stands. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tracker.domain.events import OPEN, Awaited, EventData, EventKind, Role, State, Verdict
from tracker.domain.report_state.remember import forget_fix, other_trees, remember
from tracker.domain.report_state.state import ReportState
from tracker.domain.report_state.steps import BEFORE_FIX, CANDIDATE, STEPS

# Events that change no state are ignored altogether: a candidate posted after the fix has landed, the failure of
# another candidate. The ones excluded here count all the same.
_ONLY_WITH_A_STEP = frozenset(STEPS) - {
    EventKind.RESPONDED,
    EventKind.WORKING,
    EventKind.ASKED,
    EventKind.ANSWERED,
    EventKind.DISPUTED,
    EventKind.FIX_LANDED,
    EventKind.FIX_GONE,
}
_ABOUT_A_CANDIDATE = frozenset({EventKind.FIX_CONFIRMED, EventKind.FIX_FAILED})


def fold(verdict: Verdict, events: Iterable[EventData]) -> ReportState:
    """Return the state of a report after these events. Their order of arrival does not matter.

    Reversed events are skipped, as if they had never happened; a third party never makes it `responded`.
    """
    report_state = _start(verdict)
    effective = effective_events(list(events))
    merged = any(event.kind in (EventKind.MERGED, EventKind.LANDED) for event in effective)
    for event in sorted((_reclassified(event, merged) for event in effective), key=EventData.order):
        report_state = _cured(report_state, event)
        if _counts(report_state, event):
            report_state = remember(_move(report_state, event), event)
        elif _measures_the_fix(report_state, event):
            report_state = replace(report_state, fix_measured=True)
        report_state = _closed(report_state, event)
    return report_state


def _closed(report_state: ReportState, event: EventData) -> ReportState:
    """Set `closed_at` when an event closes the report; clear it when the report is open again."""
    if report_state.state in OPEN or report_state.state is State.NO_ACTION:
        return replace(report_state, closed_at=None) if report_state.closed_at else report_state
    return report_state if report_state.closed_at else replace(report_state, closed_at=event.occurred_at)


def _cured(report_state: ReportState, event: EventData) -> ReportState:
    """Track fixes and reverts in versions. If one of several is reverted, the first of the others decides."""
    if event.kind in (EventKind.FIX_LANDED, EventKind.DROPPED) and event.commit and event.tag:
        return replace(report_state, cures=(*report_state.cures, event))
    if event.kind is EventKind.FIX_REVERTED:
        left = tuple(each for each in report_state.cures if each.commit != event.remark)
        report_state = replace(report_state, cures=left)
        if left and report_state.state in (State.FIXED, State.DROPPED):
            return remember(_move(replace(forget_fix(report_state), state=State.FIX_QUEUED), left[0]), left[0])
    return report_state


def _reclassified(event: EventData, merged: bool) -> EventData:
    """A revert outside the mainline drops a culprit that is only there; for a merged culprit, it is a queued fix."""
    elsewhere = event.kind is EventKind.DROPPED and event.commit and event.tree and not event.tag
    return replace(event, kind=EventKind.FIX_QUEUED, tag=event.remark) if elsewhere and merged else event


def _names_a_fix(event: EventData) -> bool:
    """Whether the event says which fix it is about, or a person recorded it."""
    return bool(event.title or event.commit or event.result or event.actor or event.remark)


def _counts(report_state: ReportState, event: EventData) -> bool:
    if (
        event.kind is EventKind.FIX_WITHOUT_EFFECT
        and report_state.fix
        and report_state.fix.commit not in ("", event.commit)
    ):
        return False  # another fix was measured than the current one
    if event.kind is EventKind.FIX_REVERTED and report_state.cures:
        return False  # another fix or revert is still in place
    if event.kind is EventKind.FIX_CONFIRMED and not (report_state.fix or _names_a_fix(event)):
        return False  # it confirms no known fix
    if event.kind in _ABOUT_A_CANDIDATE and event.in_reply_to in report_state.older_fixes:
        return False  # it is about a superseded candidate
    if event.kind is EventKind.DROPPED and event.commit and report_state.dropped_by_person:
        return True  # now a commit says so, too
    if event.kind is EventKind.EXPECTED and report_state.state is State.DROPPED and not report_state.dropped_by_person:
        return False  # a statement overrides an earlier statement, but not a commit
    return event.kind not in _ONLY_WITH_A_STEP or report_state.state in STEPS[event.kind].within


def _measures_the_fix(report_state: ReportState, event: EventData) -> bool:
    """Whether a result shows that the fix helps that is on its way already, or landed."""
    fix = report_state.fix
    if event.kind is not EventKind.FIX_CONFIRMED or not event.result or fix is None:
        return False
    return report_state.state in (State.FIX_QUEUED, State.FIXED) and fix.commit in ("", event.commit)


def _start(verdict: Verdict) -> ReportState:
    if verdict is Verdict.IMPROVEMENT:
        return ReportState(verdict, State.NO_ACTION)
    return ReportState(verdict, State.NO_RESPONSE, awaited=Awaited.AUTHOR)


def effective_events(events: list[EventData]) -> list[EventData]:
    """Return the events that no effective reversal undoes. A reversal can itself be reversed."""
    reversers: dict[str, list[EventData]] = {}
    for event in events:
        if event.reverses:
            reversers.setdefault(event.reverses, []).append(event)

    known: dict[str, bool] = {}

    def stands(event: EventData, above: frozenset[str]) -> bool:
        if event.key in above:  # break a cycle of reversals
            return False
        if event.key not in known:
            known[event.key] = not any(stands(r, above | {event.key}) for r in reversers.get(event.key, ()))
        return known[event.key]

    # Newest first, so that a chain of undo and redo is resolved without deep recursion.
    for event in sorted((e for e in events if e.reverses), key=EventData.order, reverse=True):
        stands(event, frozenset())
    return [event for event in events if stands(event, frozenset())]


def _move(report_state: ReportState, event: EventData) -> ReportState:
    asks = event.kind is EventKind.TEST_ASKED or (event.kind is EventKind.ASKED and report_state.state in CANDIDATE)
    if asks and report_state.state in BEFORE_FIX | CANDIDATE:
        return replace(report_state, awaited=Awaited.REPORTER)
    step = STEPS.get(event.kind)
    if _is_back(report_state, event):
        return replace(report_state, state=_without_outcome(report_state), awaited=Awaited.AUTHOR, decided_by=event.key)
    if event.kind is EventKind.FIX_GONE and (report_state.fix_merged or other_trees(report_state, event)):
        return report_state  # another tree still has it
    if _hands_back(report_state, event):
        report_state = replace(report_state, awaited=Awaited.AUTHOR)
    if step is None or report_state.state not in step.within:
        return report_state
    if event.kind is EventKind.RESPONDED and event.role is Role.THIRD_PARTY:
        return report_state
    target = step.to or _without_outcome(report_state)
    awaits = Awaited.NOBODY if target is State.NO_ACTION else step.awaits
    return replace(report_state, state=target, awaited=awaits, decided_by=event.key)


def _is_back(report_state: ReportState, event: EventData) -> bool:
    """Whether a dropped culprit is back: it was merged after all, or the revert in its tree is gone."""
    if report_state.state is not State.DROPPED or report_state.cures:
        return False
    merged = event.kind in (EventKind.MERGED, EventKind.LANDED)
    return merged or (event.kind is EventKind.FIX_GONE and event.tree == report_state.closed_in)


def _hands_back(report_state: ReportState, event: EventData) -> bool:
    """Whether an event makes the author the one awaited without changing the state: discussion among developers, and
    the lab's answers. A question to the reporter still awaits the reporter.
    """
    if event.kind is EventKind.RESPONDED:
        waits = (BEFORE_FIX | CANDIDATE) - {State.NEEDS_INFO}
        return report_state.state in waits and event.role is not Role.THIRD_PARTY
    answers = event.kind in (EventKind.ANSWERED, EventKind.FIX_FAILED)
    return answers and report_state.state in BEFORE_FIX | CANDIDATE


def _without_outcome(report_state: ReportState) -> State:
    if report_state.verdict is Verdict.IMPROVEMENT:
        return State.NO_ACTION
    return State.RESPONDED if report_state.responded_at else State.NO_RESPONSE
