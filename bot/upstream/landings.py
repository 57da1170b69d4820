"""The landing state of a commit in a tree: its first tag, since when it waits for one, or that it is gone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bot.git.commits import parse_timestamp
from bot.upstream.walk import Walked


@dataclass(frozen=True, slots=True)
class LandingState:
    """The values of a `Landing`."""

    tag: str = ""
    at: datetime | None = None
    merge: str = ""
    merged_at: datetime | None = None
    after: str = ""
    gone_at: datetime | None = None
    back_at: datetime | None = None

    @property
    def is_present(self) -> bool:
        return self.gone_at is None


def landing_states(walked: Walked, shas: Collection[str], after: str) -> dict[str, LandingState]:
    """Return the landing states of those commits that the walk saw in a tag or in a branch."""
    found: dict[str, LandingState] = {}
    for sha in shas:
        number, merge = walked.graph.tag_of(sha), walked.graph.merge_of(sha)
        if number < 0 and merge is None:
            continue
        tag = walked.tags[number] if number >= 0 else None
        merged_at = parse_timestamp(merge[1]) if merge else None
        found[sha] = LandingState(
            tag=tag.name if tag else "",
            at=tag.at if tag else merged_at,
            merge=merge[0] if merge else "",
            merged_at=merged_at,
            after="" if tag else after,
        )
    return found


def revised(
    known: Mapping[str, LandingState],
    found: Mapping[str, LandingState],
    gone: Collection[str],
    lost_tags: Collection[str],
    now: datetime,
    *,
    needs_branch: bool,
) -> dict[str, LandingState]:
    """Return the landing states that are new or changed.

    A first tag stays the first, unless it was deleted. `needs_branch`: in linux-next a commit is there only as long as
    today's branch has it, whatever the earlier days had.
    """
    changed: dict[str, LandingState] = {}
    for sha in {*known, *found}:
        old = known.get(sha)
        state = _revised(old, found.get(sha), lost_tags, now, needs_branch=needs_branch)
        if sha in gone and state and state.is_present:
            state = replace(state, gone_at=now)
        if state and state != old:
            changed[sha] = state
    return changed


def _revised(
    old: LandingState | None, new: LandingState | None, lost_tags: Collection[str], now: datetime, *, needs_branch: bool
) -> LandingState | None:
    if new is not None and needs_branch and not new.merge:
        new = replace(new, gone_at=(old.gone_at if old else None) or now)
    if old is None or new is None:
        if old and old.tag in lost_tags:
            return replace(old, tag="", at=old.merged_at or now, gone_at=None if old.merge else now)
        return old or new
    first = old if old.merge and (needs_branch or not new.merge) else new
    merge, merged_at = first.merge, first.merged_at
    came_back = old.gone_at is not None and new.is_present
    # linux-next deletes its old day tags, so the first one seen stays. For versions the walk is authoritative.
    keeps = old.tag and old.tag not in lost_tags and not (came_back and new.tag) and (needs_branch or not new.tag)
    tag, at = (old.tag, old.at) if keeps else (new.tag, new.at)
    return replace(
        new,
        tag=tag,
        at=at,
        merge=merge,
        merged_at=merged_at,
        after="" if tag else old.after or new.after,
        back_at=now if came_back else old.back_at,
    )
