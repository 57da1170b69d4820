"""Where a report stands, as a value: the state, and what is known beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tracker.domain.events import Awaited, EventData, State, Verdict


@dataclass(frozen=True, slots=True)
class Fix:
    """A candidate fix or a fix: known by the mail that carried it, its title, its commit, or all of them."""

    title: str = ""
    message_id: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class ReportState:
    """The folded state of a report. `decided_by`: the key of the event that decided it (empty: none yet)."""

    verdict: Verdict
    state: State
    decided_by: str = ""
    reported_at: datetime | None = None
    responded_at: datetime | None = None
    merged: bool = False  # the culprit is in the mainline, whether or not its first version is known
    landing: str = ""  # the first mainline version with the culprit
    merged_after: str = ""  # the last version without it, while no version has it
    in_next: str = ""  # since when the culprit is in linux-next: a day's tag, or a date
    gone: str = ""  # since when it is no longer there, though the mainline never had it
    fix: Fix | None = None
    older_fixes: frozenset[str] = frozenset()  # Message-IDs of superseded candidate fixes
    fix_landing: str = ""
    fix_measured: bool = False  # a result showed that the fix helps
    fix_trees: tuple[tuple[str, str], ...] = ()  # trees that have the fix; for linux-next, since when
    fix_merged: bool = False  # the fix is in the mainline
    fix_merged_after: str = ""  # the last version without it
    fix_gone: str = ""  # the last tree that dropped it
    cures: tuple[EventData, ...] = ()  # the fixes and reverts in a version, not themselves reverted
    fix_reverted_in: str = ""  # the version that reverted the fix
    dropped_by_person: bool = False  # a person said so, not a commit
    closed_in: str = ""  # the version in which it was dropped or disappeared
    closed_at: datetime | None = None  # when it was closed, if an event closed it
    duplicate_of: str = ""
    awaited: Awaited = Awaited.NOBODY
    remark: str = ""
    title: str = ""
    assignee: str = ""
    reminders: bool = True
    blocks: str = ""  # the release that it blocks, as a person said
