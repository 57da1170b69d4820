"""From landing states to events: what the commits in a tree mean for reports, as values. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.upstream.landings import LandingState
from bot.upstream.tracked import Related, Tracked
from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Part, TreeRole

# In a version, and in the mainline before any version; parts that are missing here cause no event.
_IN_VERSION = {
    Part.CULPRIT: EventKind.LANDED,
    Part.FIX: EventKind.FIX_LANDED,
    Part.REVERT: EventKind.DROPPED,
    Part.UNDO: EventKind.FIX_REVERTED,
}
VERSION_KINDS = frozenset(_IN_VERSION.values())
_IN_MAINLINE = {
    Part.CULPRIT: EventKind.MERGED,
    Part.FIX: EventKind.FIX_MERGED,
    Part.REVERT: EventKind.FIX_MERGED,
}
_IN_NEXT = {
    Part.CULPRIT: EventKind.IN_NEXT,
    Part.FIX: EventKind.FIX_QUEUED,
    Part.REVERT: EventKind.DROPPED,
    Part.UNDO: EventKind.FIX_GONE,
}
_ELSEWHERE = {Part.FIX: EventKind.FIX_QUEUED, Part.REVERT: EventKind.DROPPED, Part.UNDO: EventKind.FIX_GONE}
NEXT = "linux-next"  # the name of the tree in status text
_MOMENT = timedelta(milliseconds=1)
_DEEPEST = 50  # reverts of reverts


@dataclass(frozen=True, slots=True)
class TrackedCommit:
    """A commit and its part in a report. `depth`: how many commits precede it in a chain of reverts; `own`: it is the
    very commit that was reported; `not_before`: when the commit that it replaces in a tree left.
    """

    sha: str
    title: str
    part: Part
    undoes: str = ""
    depth: int = 0
    own: bool = False
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Now:
    """What currently holds for a commit and a report. `event`: to be stored, or None; `is_there`: the tree has the
    commit.
    """

    report: int
    sha: str
    event: EventData | None
    part: Part
    is_there: bool


@dataclass(frozen=True, slots=True)
class View:
    """A tree after a walk. `places`: the landing states of all followed commits; `mainline`: the commits that a
    mainline has; `day`: the newest day of linux-next.
    """

    tree: str
    role: TreeRole
    tracked: Tracked
    places: Mapping[str, LandingState]
    titles: Mapping[str, str]
    mainline: Collection[str]
    day: str
    now: datetime

    def now_so(self, shas: Collection[str]) -> Iterator[Now]:
        """Yield what holds for these commits and each report that they relate to."""
        for sha in sorted(shas):
            place = self.places.get(sha)
            if place is None:
                continue
            for related in self.tracked.related.get(sha, {}).values():
                event = self._event(self._subject(sha, related), related.report, place)
                yield Now(related.report, sha, event, related.part, place.is_there)

    def suggested(self, sha: str, title: str, part: Part, undoes: str = "") -> EventData | None:
        """Return the event that accepting a suggestion would store, for a commit that may have this part."""
        place = self.places.get(sha)
        event = told(TrackedCommit(sha, title, part, undoes), place, self.tree, self.role, self.now) if place else None
        if part is Part.CULPRIT and event:
            return replace(event, kind=EventKind.SAME_PATCH, title=title, tag="")
        return event

    def _subject(self, sha: str, related: Related) -> TrackedCommit:
        others = self.tracked.commits[related.report].items()
        places = [self.places.get(each) for each, other in others if other.part is related.part and each != sha]
        return TrackedCommit(
            sha=sha,
            title=self.titles.get(sha) or related.title,
            part=related.part,
            undoes=related.undoes,
            depth=self._depth(sha, related.report),
            own=sha.startswith(self.tracked.reports[related.report].sha),
            not_before=max((place.gone_at for place in places if place and place.gone_at), default=None),
        )

    def _depth(self, sha: str, report: int) -> int:
        commits = self.tracked.commits[report]
        depth = 0
        while depth < _DEEPEST and sha in commits and commits[sha].undoes:
            sha, depth = commits[sha].undoes, depth + 1
        return depth

    def _event(self, subject: TrackedCommit, report: int, place: LandingState) -> EventData | None:
        alike = [sha for sha, each in self.tracked.commits[report].items() if each.part is subject.part]
        merged = any(sha in self.mainline for sha in alike)
        if subject.sha in self.mainline or (subject.part is Part.CULPRIT and merged):
            return None  # it has moved on to the mainline
        if place.is_there:
            return told(subject, place, self.tree, self.role, self.now)
        if merged or any((other := self.places.get(sha)) and other.is_there for sha in alike):
            return None  # it is still there under another sha
        return told_gone(subject, self.tree, self.role, self.day, place.gone_at or self.now)


def told(subject: TrackedCommit, place: LandingState, tree: str, role: TreeRole, now: datetime) -> EventData | None:
    """Return the event of a commit that is in a tree, or None if that causes none.

    A revert is dated a moment after what it reverts, although one version may have brought both.
    """
    kinds = {TreeRole.MAINLINE: _IN_MAINLINE, TreeRole.NEXT: _IN_NEXT, TreeRole.MAINTAINER: _ELSEWHERE}.get(role, {})
    if role is TreeRole.MAINLINE and place.tag:
        kinds = _IN_VERSION
    kind = kinds.get(subject.part)
    if kind is None or not place.is_there or _is_backport(subject, place):
        return None
    at = place.back_at or place.at or place.merged_at or now
    if subject.not_before and role is not TreeRole.MAINLINE:
        at = max(at, subject.not_before + _MOMENT)
    event = EventData(
        key=f"{kind}:{tree}:{subject.sha}",
        kind=kind,
        occurred_at=min(at, now) + timedelta(microseconds=subject.depth),
        commit=subject.sha,
        title="" if subject.part is Part.CULPRIT else subject.title,
        tag=_tag(place, role),
        tree=NEXT if role is TreeRole.NEXT else tree,
    )
    if kind is EventKind.FIX_REVERTED:
        return replace(event, remark=subject.undoes)
    if kind is EventKind.DROPPED and role is TreeRole.NEXT:
        return replace(event, tag="", remark=event.tag)  # it counts as dropped there, whatever the day
    return event


def _is_backport(subject: TrackedCommit, place: LandingState) -> bool:
    """Whether a clone of the mainline has it only by the tags of stable trees."""
    version = versions.parse(place.tag)
    return version is not None and version.is_stable and not subject.own


def _tag(place: LandingState, role: TreeRole) -> str:
    if role is TreeRole.NEXT:
        since = place.back_at or place.merged_at or place.at
        return place.tag if place.tag and not place.back_at else (since.strftime("%Y-%m-%d") if since else "")
    if role is TreeRole.MAINLINE:
        return place.tag or place.after
    return ""


def told_gone(subject: TrackedCommit, tree: str, role: TreeRole, day: str, at: datetime) -> EventData | None:
    """Return the event of a culprit that left linux-next, or of a fix that left any tree, without being in the
    mainline. `day`: the newest day of linux-next. For a revert that left, the earlier event is reversed instead.
    """
    kinds = {Part.CULPRIT: EventKind.GONE, Part.FIX: EventKind.FIX_GONE}
    kind = kinds.get(subject.part)
    if kind is None or role not in (TreeRole.NEXT, TreeRole.MAINTAINER):
        return None
    if kind is EventKind.GONE and role is not TreeRole.NEXT:
        return None
    return EventData(
        key=f"{kind}:{tree}:{subject.sha}",
        kind=kind,
        occurred_at=at,
        commit=subject.sha,
        title="" if subject.part is Part.CULPRIT else subject.title,
        tag=day or at.strftime("%Y-%m-%d"),
        tree=NEXT if role is TreeRole.NEXT else tree,
    )
