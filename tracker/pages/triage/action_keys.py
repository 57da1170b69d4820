"""Report actions of the triage page: one key, one kind of event. CONTRIBUTING.md tells how to add one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tracker.domain.events import EventKind


@dataclass(frozen=True, slots=True)
class ActionKey:
    """A report action. `needs` describes its required argument, `offers` an optional one; "" for none."""

    name: str
    key: str
    label: str
    kind: EventKind
    needs: str = ""
    offers: str = ""


ACTION_KEYS = (
    ActionKey("responded", "r", "Responded", EventKind.RESPONDED),
    ActionKey("working", "w", "Working on it", EventKind.WORKING),
    ActionKey("needs-info", "i", "Needs info", EventKind.ASKED),
    ActionKey("disputed", "d", "Disputed", EventKind.DISPUTED),
    ActionKey("proposed", "p", "Fix proposed", EventKind.FIX_PROPOSED, offers="the title of the fix"),
    ActionKey("confirmed", "c", "Fix confirmed", EventKind.FIX_CONFIRMED, offers="the title of the fix"),
    ActionKey("queued", "q", "Fix queued", EventKind.FIX_QUEUED, offers="the tree"),
    ActionKey("fixed", "f", "Fixed", EventKind.FIX_LANDED, offers="the version: v6.12-rc4"),
    ActionKey("dropped", "l", "Dropped", EventKind.DROPPED),
    ActionKey("expected", "e", "Expected", EventKind.EXPECTED),
    ActionKey("invalid", "v", "Invalid", EventKind.INVALID),
    ActionKey("duplicate", "m", "Duplicate", EventKind.DUPLICATE, needs="the sha of the other report's culprit"),
    ActionKey("gone", "g", "Disappeared", EventKind.DISAPPEARED, offers="the version: v6.12-rc4"),
    ActionKey("reopen", "o", "Reopen", EventKind.REOPENED),
    ActionKey("block", "b", "Blocks the release", EventKind.BLOCKS),
    ActionKey("unblock", "B", "No longer blocks", EventKind.UNBLOCKED),
    ActionKey("note", "n", "Note", EventKind.NOTED, needs="the note"),
    ActionKey("assign", "a", "Assign", EventKind.ASSIGNED, needs="the assignee"),
)
BY_NAME = {action.name: action for action in ACTION_KEYS}
