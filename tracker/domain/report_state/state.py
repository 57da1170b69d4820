"""Where a report stands, as a value: the state, and what is known beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tracker.domain.events import Awaited, EventData, State, Verdict


@dataclass(frozen=True, slots=True)
class Fix:
    """A candidate or a fix: known by the mail that carried it, by its title, by its commit, or by all."""

    title: str = ""
    message_id: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class ReportState:
    """Where a report stands, with the key of the event that put it there (empty: none did yet)."""

    verdict: Verdict
    state: State
    because: str = ""
    reported_at: datetime | None = None
    responded_at: datetime | None = None
    merged: bool = False  # the culprit is in the mainline, be its first version known or not
    landing: str = ""  # the first mainline version with the culprit
    merged_after: str = ""  # the last version without it, as long as no version has it
    in_next: str = ""  # since when the culprit is in linux-next: a day's tag, or a date
    gone: str = ""  # since when it is there no longer, though the mainline never had it
    fix: Fix | None = None
    older_fixes: frozenset[str] = frozenset()  # the Message-IDs of candidates that a later one replaced
    fix_landing: str = ""
    fix_trees: tuple[tuple[str, str], ...] = ()  # the trees that hold the fix; of linux-next, since when
    fix_merged: bool = False  # the fix is in the mainline
    fix_merged_after: str = ""  # the last version without it
    fix_gone: str = ""  # the last tree that it was gone from
    cures: tuple[EventData, ...] = ()  # the fixes and reverts that a version has, and none took back
    fix_reverted_in: str = ""  # the version that took the fix back
    dropped_by_word: bool = False  # and not by a commit
    closed_in: str = ""  # the version in which it was dropped or disappeared
    closed_at: datetime | None = None  # when it came to its end, where it is closed by something that happened
    duplicate_of: str = ""
    awaited: Awaited = Awaited.NOBODY
    remark: str = ""
    title: str = ""
    assignee: str = ""
    reminders: bool = True
    blocks: str = ""  # the release that must not go out with it, by the word of a person
