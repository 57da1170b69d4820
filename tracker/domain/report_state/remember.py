"""What an event adds beside the state: landings, fixes, remarks, who answered first."""

from __future__ import annotations

from dataclasses import replace

from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Role
from tracker.domain.report_state.state import Fix, ReportState

_ANSWERS = {
    *(EventKind.RESPONDED, EventKind.WORKING, EventKind.ASKED, EventKind.DISPUTED, EventKind.FIX_PROPOSED),
}
_OF_LANDINGS = frozenset({EventKind.IN_NEXT, EventKind.GONE, EventKind.MERGED, EventKind.LANDED})
_OF_FIXES = frozenset(
    {
        EventKind.FIX_PROPOSED,
        EventKind.FIX_CONFIRMED,
        EventKind.FIX_QUEUED,
        EventKind.FIX_MERGED,
        EventKind.FIX_LANDED,
    }
)
_FORGETS_FIX = frozenset(
    {
        EventKind.FIX_FAILED,
        EventKind.FIX_WITHDRAWN,
        EventKind.FIX_WITHOUT_EFFECT,
        EventKind.FIX_REVERTED,
        EventKind.STILL_THERE,
        EventKind.REOPENED,
        EventKind.UNDUPLICATED,
    }
)


def remember(state: ReportState, event: EventData) -> ReportState:
    """Apply what an event records besides the state."""
    if event.kind in _ANSWERS and event.role in (Role.AUTHOR, Role.MAINTAINER) and state.responded_at is None:
        state = replace(state, responded_at=event.occurred_at)
    if event.kind in _OF_LANDINGS:
        return _remember_landing(state, event)
    if event.kind in _OF_FIXES:
        return _remember_fix(state, event)
    if event.kind in _FORGETS_FIX:
        return replace(forget_fix(state), fix_reverted_in=event.tag if event.kind is EventKind.FIX_REVERTED else "")
    match event.kind:
        case EventKind.REPORTED:
            return replace(state, reported_at=state.reported_at or event.occurred_at)
        case EventKind.FIX_GONE:
            left = other_trees(state, event)
            gone = "" if left or state.fix_merged else event.tree
            closed_in = "" if state.closed_in == event.tree else state.closed_in
            return replace(state, fix_trees=left, fix_gone=gone, closed_in=closed_in)
        case EventKind.DROPPED | EventKind.DISAPPEARED:
            where = event.tag or (event.tree if event.commit else "")
            fix = Fix(event.title, "", event.commit) if where and event.commit else state.fix
            return replace(state, closed_in=where, dropped_by_person=not event.commit, fix=fix)
        case EventKind.DUPLICATE:
            return replace(state, duplicate_of=event.remark)
    return _remember_triage(state, event)


def _remember_triage(state: ReportState, event: EventData) -> ReportState:
    """Apply what a person records about the report."""
    match event.kind:
        case EventKind.NOTED:
            return replace(state, remark=event.remark)
        case EventKind.RETITLED:
            return replace(state, title=event.title)
        case EventKind.ASSIGNED:
            return replace(state, assignee=event.remark)
        case EventKind.REMINDERS_OFF:
            return replace(state, reminders=False)
        case EventKind.BLOCKS:
            return replace(state, blocks=event.tag)
        case EventKind.UNBLOCKED:
            return replace(state, blocks="")
    return state


def _remember_landing(state: ReportState, event: EventData) -> ReportState:
    """Apply where git has the culprit."""
    if event.kind is EventKind.IN_NEXT:
        return replace(state, in_next=_since(state.in_next, event.tag), gone="")
    if event.kind is EventKind.GONE:
        return replace(state, in_next="", gone=event.tag)
    if event.kind is EventKind.MERGED:
        return replace(state, merged=True, merged_after=event.tag)
    return replace(state, merged=True, landing=_earlier(state.landing, event.tag))


def _since(known: str, tag: str) -> str:
    """Return the first of two days in linux-next; a tag (next-…) is preferred to a bare date."""
    return known if known.startswith("next-") or (not tag.startswith("next-") and known) else tag


def other_trees(state: ReportState, event: EventData) -> tuple[tuple[str, str], ...]:
    """Return the trees that have the fix, other than the one of this event."""
    return tuple(each for each in state.fix_trees if each[0] != event.tree)


def forget_fix(state: ReportState) -> ReportState:
    """Drop the candidate fix; no late reply brings it back."""
    return replace(
        state,
        fix=None,
        older_fixes=_older_fixes(state),
        fix_landing="",
        fix_measured=False,
        fix_trees=(),
        fix_merged=False,
        fix_gone="",
        fix_reverted_in="",
        closed_in="",
        duplicate_of="",
        dropped_by_person=False,
    )


def _older_fixes(state: ReportState) -> frozenset[str]:
    """Return the superseded candidates, including the current one, which is about to be replaced."""
    return state.older_fixes | ({state.fix.message_id} if state.fix and state.fix.message_id else set())


def _remember_fix(state: ReportState, event: EventData) -> ReportState:
    named = Fix(event.title, event.message_id if event.kind is EventKind.FIX_PROPOSED else "", event.commit)
    fix, older = named, state.older_fixes
    if event.kind is EventKind.FIX_PROPOSED:
        older = _older_fixes(state)
    if state.fix and event.kind is not EventKind.FIX_PROPOSED:  # the same candidate, now better known
        fix = Fix(named.title or state.fix.title, state.fix.message_id, named.commit or state.fix.commit)
    landing = _earlier(state.fix_landing, event.tag) if event.kind is EventKind.FIX_LANDED else state.fix_landing
    measured = bool(event.result) if event.kind is EventKind.FIX_CONFIRMED else state.fix_measured
    if event.kind is EventKind.FIX_PROPOSED:
        measured = False
    state = replace(state, fix=fix, older_fixes=older, fix_landing=landing, fix_measured=measured)
    state = replace(state, fix_gone="", fix_reverted_in="")
    if event.kind is EventKind.FIX_MERGED:
        return replace(state, fix_merged=True, fix_merged_after=event.tag)
    if event.kind is EventKind.FIX_QUEUED:
        known = next((since for tree, since in state.fix_trees if tree == event.tree), "")
        return replace(state, fix_trees=(*other_trees(state, event), (event.tree, _since(known, event.tag))))
    return state


def _earlier(known: str, tag: str) -> str:
    """Return the earlier of two tags; a tag that is not a kernel version counts as later than any version."""
    if not known or not tag:
        return known or tag
    old, new = versions.parse(known), versions.parse(tag)
    if old is None or new is None:
        return tag if old is None and new is not None else known
    return tag if new < old else known
