"""What a commit's place in a tree says about a report: events as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.upstream.places import Place
from tracker import versions
from tracker.happenings import Event, Happening, Part
from tracker.models.tree import TreeRole

# In a version, and in the mainline before any version; what is not here tells nothing there.
_IN_VERSION = {
    Part.CULPRIT: Happening.LANDED,
    Part.FIX: Happening.FIX_LANDED,
    Part.REVERT: Happening.DROPPED,
    Part.UNDO: Happening.FIX_REVERTED,
}
VERSION_KINDS = frozenset(_IN_VERSION.values())
_IN_MAINLINE = {
    Part.CULPRIT: Happening.MERGED,
    Part.FIX: Happening.FIX_MERGED,
    Part.REVERT: Happening.FIX_MERGED,
}
_IN_NEXT = {
    Part.CULPRIT: Happening.IN_NEXT,
    Part.FIX: Happening.FIX_QUEUED,
    Part.REVERT: Happening.DROPPED,
    Part.UNDO: Happening.FIX_GONE,
}
_ELSEWHERE = {Part.FIX: Happening.FIX_QUEUED, Part.REVERT: Happening.DROPPED, Part.UNDO: Happening.FIX_GONE}
_GONE = {Part.CULPRIT: Happening.GONE, Part.FIX: Happening.FIX_GONE, Part.REVERT: Happening.FIX_GONE}
_MOMENT = timedelta(milliseconds=1)
NEXT = "linux-next"  # what the tree is called in a sentence


@dataclass(frozen=True, slots=True)
class Subject:
    """A commit, its part in a report, and how many commits stand before it in a chain of reverts. `own`: it is the very
    commit that was reported. `not_before`: it stands in a tree for what has left it then.
    """

    sha: str
    title: str
    part: Part
    depth: int = 0
    own: bool = False
    not_before: datetime | None = None


def told(subject: Subject, place: Place, tree: str, role: TreeRole, now: datetime) -> Event | None:
    """The event of a commit that is in a tree; None where that tells nothing.

    A revert is told a moment after what it reverts, though one version may have brought both.
    """
    kinds = {TreeRole.MAINLINE: _IN_MAINLINE, TreeRole.NEXT: _IN_NEXT, TreeRole.MAINTAINER: _ELSEWHERE}.get(role, {})
    if role == TreeRole.MAINLINE and place.tag:
        kinds = _IN_VERSION
    kind = kinds.get(subject.part)
    if kind is None or not place.is_there or _is_backport(subject, place):
        return None
    at = place.back_at or place.at or place.merged_at or now
    if subject.not_before and role != TreeRole.MAINLINE:
        at = max(at, subject.not_before + _MOMENT)
    event = Event(
        key=f"{kind}:{tree}:{subject.sha}",
        kind=kind,
        at=min(at, now) + timedelta(microseconds=subject.depth),
        commit=subject.sha,
        title="" if subject.part is Part.CULPRIT else subject.title,
        tag=_tag(place, role),
        tree=NEXT if role == TreeRole.NEXT else tree,
    )
    if kind is Happening.DROPPED and role == TreeRole.NEXT:
        return replace(event, tag="", remark=event.tag)  # it counts as dropped there, whatever the day
    return event


def _is_backport(subject: Subject, place: Place) -> bool:
    """Whether a clone of the mainline has it by the tags of stable trees alone."""
    version = versions.parse(place.tag)
    return version is not None and version.is_stable and not subject.own


def _tag(place: Place, role: TreeRole) -> str:
    if role == TreeRole.NEXT:
        since = place.back_at or place.merged_at or place.at
        return place.tag if place.tag and not place.back_at else (since.strftime("%Y-%m-%d") if since else "")
    if role == TreeRole.MAINLINE:
        return place.tag or place.after
    return ""


def told_gone(subject: Subject, tree: str, role: TreeRole, day: str, now: datetime) -> Event | None:
    """The event of a commit that left a tree, though the mainline does not have it. `day`: the first without it."""
    kind = _GONE.get(subject.part)
    if kind is None or role not in (TreeRole.NEXT, TreeRole.MAINTAINER):
        return None
    if kind is Happening.GONE and role != TreeRole.NEXT:
        return None
    return Event(
        key=f"{kind}:{tree}:{subject.sha}",
        kind=kind,
        at=now,
        commit=subject.sha,
        title="" if subject.part is Part.CULPRIT else subject.title,
        tag=day or now.strftime("%Y-%m-%d"),
        tree=NEXT if role == TreeRole.NEXT else tree,
    )


def suggested(subject: Subject, place: Place, tree: str, role: TreeRole, now: datetime) -> Event | None:
    """What a click would make of a commit that is not sure to have this part: told in the same words."""
    event = told(subject, place, tree, role, now)
    if subject.part is Part.CULPRIT and event:
        return replace(event, kind=Happening.SAME_PATCH, title=subject.title, tag="")
    return event
