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
_IN_MAINTAINER_TREE = {Part.FIX: EventKind.FIX_QUEUED, Part.REVERT: EventKind.DROPPED, Part.UNDO: EventKind.FIX_GONE}
NEXT = "linux-next"  # the name of the tree in status text
_MOMENT = timedelta(milliseconds=1)
_MAX_DEPTH = 50  # reverts of reverts


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
    """What currently holds for a commit and a report. `event`: to be stored, or None; `is_present`: the tree has
    the commit.
    """

    report: int
    sha: str
    event: EventData | None
    part: Part
    is_present: bool


@dataclass(frozen=True, slots=True)
class View:
    """A tree after a walk. `landings`: the landing states of all followed commits; `mainline`: the commits that a
    mainline has; `day`: the newest day of linux-next.
    """

    tree: str
    role: TreeRole
    tracked: Tracked
    landings: Mapping[str, LandingState]
    titles: Mapping[str, str]
    mainline: Collection[str]
    day: str
    now: datetime

    def current_states(self, shas: Collection[str]) -> Iterator[Now]:
        """Yield what holds for these commits and each report that they relate to."""
        for sha in sorted(shas):
            landing = self.landings.get(sha)
            if landing is None:
                continue
            for related in self.tracked.related.get(sha, {}).values():
                event = self._event(self._tracked_commit(sha, related), related.report, landing)
                yield Now(related.report, sha, event, related.part, landing.is_present)

    def suggested(self, sha: str, title: str, part: Part, undoes: str = "") -> EventData | None:
        """Return the event that accepting a suggestion would store, for a commit that may have this part."""
        landing = self.landings.get(sha)
        event = (
            landing_event(TrackedCommit(sha, title, part, undoes), landing, self.tree, self.role, self.now)
            if landing
            else None
        )
        if part is Part.CULPRIT and event:
            return replace(event, kind=EventKind.SAME_PATCH, title=title, tag="")
        return event

    def _tracked_commit(self, sha: str, related: Related) -> TrackedCommit:
        others = self.tracked.commits[related.report].items()
        landings = [self.landings.get(each) for each, other in others if other.part is related.part and each != sha]
        return TrackedCommit(
            sha=sha,
            title=self.titles.get(sha) or related.title,
            part=related.part,
            undoes=related.undoes,
            depth=self._depth(sha, related.report),
            own=sha.startswith(self.tracked.reports[related.report].sha),
            not_before=max((landing.gone_at for landing in landings if landing and landing.gone_at), default=None),
        )

    def _depth(self, sha: str, report: int) -> int:
        commits = self.tracked.commits[report]
        depth = 0
        while depth < _MAX_DEPTH and sha in commits and commits[sha].undoes:
            sha, depth = commits[sha].undoes, depth + 1
        return depth

    def _event(self, commit: TrackedCommit, report: int, landing: LandingState) -> EventData | None:
        alike = [sha for sha, each in self.tracked.commits[report].items() if each.part is commit.part]
        merged = any(sha in self.mainline for sha in alike)
        if commit.sha in self.mainline or (commit.part is Part.CULPRIT and merged):
            return None  # it has moved on to the mainline
        if landing.is_present:
            return landing_event(commit, landing, self.tree, self.role, self.now)
        if merged or any((other := self.landings.get(sha)) and other.is_present for sha in alike):
            return None  # it is still there under another sha
        return removal_event(commit, self.tree, self.role, self.day, landing.gone_at or self.now)


def landing_event(
    commit: TrackedCommit, landing: LandingState, tree: str, role: TreeRole, now: datetime
) -> EventData | None:
    """Return the event of a commit that is in a tree, or None if that causes none.

    A revert is dated a moment after what it reverts, although one version may have brought both.
    """
    kinds = {TreeRole.MAINLINE: _IN_MAINLINE, TreeRole.NEXT: _IN_NEXT, TreeRole.MAINTAINER: _IN_MAINTAINER_TREE}.get(
        role, {}
    )
    if role is TreeRole.MAINLINE and landing.tag:
        kinds = _IN_VERSION
    kind = kinds.get(commit.part)
    if kind is None or not landing.is_present or _is_backport(commit, landing):
        return None
    at = landing.back_at or landing.at or landing.merged_at or now
    if commit.not_before and role is not TreeRole.MAINLINE:
        at = max(at, commit.not_before + _MOMENT)
    event = EventData(
        key=f"{kind}:{tree}:{commit.sha}",
        kind=kind,
        occurred_at=min(at, now) + timedelta(microseconds=commit.depth),
        commit=commit.sha,
        title="" if commit.part is Part.CULPRIT else commit.title,
        tag=_tag(landing, role),
        tree=NEXT if role is TreeRole.NEXT else tree,
    )
    if kind is EventKind.FIX_REVERTED:
        return replace(event, remark=commit.undoes)
    if kind is EventKind.DROPPED and role is TreeRole.NEXT:
        return replace(event, tag="", remark=event.tag)  # it counts as dropped there, whatever the day
    return event


def _is_backport(commit: TrackedCommit, landing: LandingState) -> bool:
    """Whether a clone of the mainline has it only by the tags of stable trees."""
    version = versions.parse(landing.tag)
    return version is not None and version.is_stable and not commit.own


def _tag(landing: LandingState, role: TreeRole) -> str:
    if role is TreeRole.NEXT:
        since = landing.back_at or landing.merged_at or landing.at
        return landing.tag if landing.tag and not landing.back_at else (since.strftime("%Y-%m-%d") if since else "")
    if role is TreeRole.MAINLINE:
        return landing.tag or landing.after
    return ""


def removal_event(commit: TrackedCommit, tree: str, role: TreeRole, day: str, at: datetime) -> EventData | None:
    """Return the event of a culprit that left linux-next, or of a fix that left any tree, without being in the
    mainline. `day`: the newest day of linux-next. For a revert that left, the earlier event is reversed instead.
    """
    kinds = {Part.CULPRIT: EventKind.GONE, Part.FIX: EventKind.FIX_GONE}
    kind = kinds.get(commit.part)
    if kind is None or role not in (TreeRole.NEXT, TreeRole.MAINTAINER):
        return None
    if kind is EventKind.GONE and role is not TreeRole.NEXT:
        return None
    return EventData(
        key=f"{kind}:{tree}:{commit.sha}",
        kind=kind,
        occurred_at=at,
        commit=commit.sha,
        title="" if commit.part is Part.CULPRIT else commit.title,
        tag=day or at.strftime("%Y-%m-%d"),
        tree=NEXT if role is TreeRole.NEXT else tree,
    )
