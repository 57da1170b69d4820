"""What a person may do to reports at the desk: one key, one kind of event. Pure. The recipe is in CONTRIBUTING.md."""

from __future__ import annotations

from dataclasses import dataclass

from tracker.domain.events import Happening


@dataclass(frozen=True, slots=True)
class Verb:
    """`needs`: what has to be told beside it, "" for nothing; `offers`: what may be told beside it."""

    name: str
    key: str
    label: str
    kind: Happening
    needs: str = ""
    offers: str = ""


VERBS = (
    Verb("responded", "r", "Responded", Happening.RESPONDED),
    Verb("working", "w", "Working on it", Happening.WORKING),
    Verb("needs-info", "i", "Needs info", Happening.ASKED),
    Verb("disputed", "d", "Disputed", Happening.DISPUTED),
    Verb("proposed", "p", "Fix proposed", Happening.FIX_PROPOSED, offers="the title of the fix"),
    Verb("confirmed", "c", "Fix confirmed", Happening.FIX_CONFIRMED, offers="the title of the fix"),
    Verb("queued", "q", "Fix queued", Happening.FIX_QUEUED, offers="the tree"),
    Verb("fixed", "f", "Fixed", Happening.FIX_LANDED, offers="the version: v6.12-rc4"),
    Verb("dropped", "l", "Dropped", Happening.DROPPED),
    Verb("expected", "e", "Expected", Happening.EXPECTED),
    Verb("invalid", "v", "Invalid", Happening.INVALID),
    Verb("duplicate", "m", "Duplicate", Happening.DUPLICATE, needs="the sha of the other report's culprit"),
    Verb("gone", "g", "Gone", Happening.DISAPPEARED, offers="the version: v6.12-rc4"),
    Verb("reopen", "o", "Reopen", Happening.REOPENED),
    Verb("block", "b", "Blocks the release", Happening.BLOCKS),
    Verb("unblock", "B", "Blocks no longer", Happening.UNBLOCKED),
    Verb("note", "n", "Note", Happening.NOTED, needs="the note"),
    Verb("assign", "a", "Assign", Happening.ASSIGNED, needs="to whom"),
)
BY_NAME = {verb.name: verb for verb in VERBS}
