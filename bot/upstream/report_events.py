"""From matches and landings to the events of reports: what commits in a tree mean, and storing that.

What a commit's landing means depends on its part (culprit, fix, revert, or undo of either) and on the tree's role:
the tables below give the event for each pair, and a pair that is missing causes none. What has moved on to the
mainline speaks there and no longer in the trees before it; a patch that is still in a tree under another sha has not
left. A revert is dated a moment after what it reverts, although one version may have brought both.

An event is stored once, by its key; one that no longer holds is reversed and not deleted, because a tag was deleted,
a branch rewound, or a revert has left. Only git reverses what git reported. Uncertain matches become suggestions,
once per title, whether that comes from mail or from git; so does a culprit that is gone from linux-next, until it
comes back or is merged.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.upstream.landings import LandingState
from bot.upstream.matching import Match, Related, Tracked
from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Part, TreeRole
from tracker.domain.report_state import effective_events
from tracker.models import UNDECIDED, Decision, Event, RelatedCommit, Report, Suggestion, Tree
from tracker.services import event_log
from tracker.services.database import in_parts

# --- Events as values ---

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
_KINDS = {TreeRole.MAINLINE: _IN_MAINLINE, TreeRole.NEXT: _IN_NEXT, TreeRole.MAINTAINER: _IN_MAINTAINER_TREE}
NEXT = "linux-next"  # the name of the tree in status text
_UPSTREAM_MOMENT = timedelta(milliseconds=1)
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
class CurrentState:
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

    def current_states(self, shas: Collection[str]) -> Iterator[CurrentState]:
        """Yield what holds for these commits and each report that they relate to."""
        for sha in sorted(shas):
            landing = self.landings.get(sha)
            if landing is None:
                continue
            for related in self.tracked.related.get(sha, {}).values():
                event = self._event(self._tracked_commit(sha, related), related.report, landing)
                yield CurrentState(related.report, sha, event, related.part, landing.is_present)

    def suggested(self, sha: str, title: str, part: Part, undoes: str = "") -> EventData | None:
        """Return the event that accepting a suggestion would store, for a commit that may have this part."""
        landing = self.landings.get(sha)
        if landing is None:
            return None
        event = landing_event(TrackedCommit(sha, title, part, undoes), landing, self.tree, self.role, self.now)
        if part is Part.CULPRIT and event:
            return replace(event, kind=EventKind.SAME_PATCH, title=title, tag="")
        return event

    def _tracked_commit(self, sha: str, related: Related) -> TrackedCommit:
        commits = self.tracked.commits[related.report]
        alike = (other_sha for other_sha, other in commits.items() if other.part is related.part and other_sha != sha)
        landings = [landing for other_sha in alike if (landing := self.landings.get(other_sha))]
        reverted, depth = sha, 0
        while depth < _MAX_DEPTH and reverted in commits and commits[reverted].undoes:
            reverted, depth = commits[reverted].undoes, depth + 1
        return TrackedCommit(
            sha=sha,
            title=self.titles.get(sha) or related.title,
            part=related.part,
            undoes=related.undoes,
            depth=depth,
            own=sha.startswith(self.tracked.reports[related.report].sha),
            not_before=max((landing.gone_at for landing in landings if landing.gone_at), default=None),
        )

    def _event(self, commit: TrackedCommit, report: int, landing: LandingState) -> EventData | None:
        alike = [sha for sha, related in self.tracked.commits[report].items() if related.part is commit.part]
        merged = any(sha in self.mainline for sha in alike)
        if commit.sha in self.mainline or (commit.part is Part.CULPRIT and merged):
            return None  # it has moved on to the mainline
        if landing.is_present:
            is_older = commit.part is Part.FIX and self._was_there_before(landing, report)
            return None if is_older else landing_event(commit, landing, self.tree, self.role, self.now)
        if merged or any((other := self.landings.get(sha)) and other.is_present for sha in alike):
            return None  # it is still there under another sha
        return removal_event(commit, self.tree, self.role, self.day, landing.gone_at or self.now)

    def _was_there_before(self, landing: LandingState, report: int) -> bool:
        """Whether a commit is in an older version of the mainline than every culprit: then it fixes none of them.
        Within a version, or before the next one, either may have been merged first.
        """
        version = versions.parse(landing.tag)
        if self.role is not TreeRole.MAINLINE or version is None:
            return False
        related = self.tracked.commits[report].items()
        landings = (self.landings.get(sha) for sha, commit in related if commit.part is Part.CULPRIT)
        tags = [culprit.tag for culprit in landings if culprit and culprit.is_present]
        return bool(tags) and all((other := versions.parse(tag)) is None or version < other for tag in tags)


def landing_event(
    commit: TrackedCommit, landing: LandingState, tree: str, role: TreeRole, now: datetime
) -> EventData | None:
    """Return the event of a commit that is in a tree, or None if that causes none.

    A revert is dated a moment after what it reverts, although one version may have brought both.
    """
    kind = (_IN_VERSION if role is TreeRole.MAINLINE and landing.tag else _KINDS.get(role, {})).get(commit.part)
    version = versions.parse(landing.tag)
    backport = version is not None and version.is_stable and not commit.own  # in a clone with the tags of stable trees
    if kind is None or not landing.is_present or backport:
        return None
    at = landing.back_at or landing.at or landing.merged_at or now
    if commit.not_before and role is not TreeRole.MAINLINE:
        at = max(at, commit.not_before + _UPSTREAM_MOMENT)
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
    kind = {Part.CULPRIT: EventKind.GONE, Part.FIX: EventKind.FIX_GONE}.get(commit.part)
    where = (TreeRole.NEXT,) if kind is EventKind.GONE else (TreeRole.NEXT, TreeRole.MAINTAINER)
    if kind is None or role not in where:
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


# --- Recording them ---

_MOMENT = timedelta(seconds=1)
_LEFT = "left_next"  # the rule of suggestions about culprits that are gone from linux-next
_PARTS = {EventKind.SAME_PATCH: Part.CULPRIT, EventKind.DROPPED: Part.REVERT, EventKind.FIX_REVERTED: Part.UNDO}


def record(view: View, current_states: Sequence[CurrentState]) -> int:
    """Store new events, and reverse those that no longer hold. Return the number of events stored."""
    reports: dict[int, Report] = {}
    quotes: dict[tuple[int, str], str] = {}  # the words that relate git's commits to these reports
    reported: defaultdict[tuple[int, str, str], list[Event]] = defaultdict(list)  # by report, commit and tree
    said: defaultdict[int, list[EventData]] = defaultdict(list)
    for batch in in_parts({state.report for state in current_states}):
        reports |= {report.pk: report for report in Report.objects.filter(pk__in=batch)}
        related = RelatedCommit.objects.filter(report__in=batch).values_list("report", "commit__sha", "quote")
        quotes |= {(report, sha): quote for report, sha, quote in related}
        # Only git reverses what git reported.
        for event in Event.objects.filter(report__in=batch, message_id="", actor="", result="").exclude(commit=""):
            said[event.report_id].append(event.value())
            if not event.reverses:
                tree = event.key.partition(":")[2].partition(":")[0]
                reported[event.report_id, event.commit, tree].append(event)
    standing = {(report, event.key) for report, events in said.items() for event in effective_events(events)}
    rows: list[Event] = []
    for current in current_states:
        report, history = reports[current.report], reported[current.report, current.sha, view.tree]
        active = [event for event in history if (event.report_id, event.key) in standing]
        rows += [_reversal(report, event, view) for event in active if _is_wrong(event, current, view)]
        # A commit that came back to a tree gets a new event.
        if (new := current.event) and not any(
            (event.kind, event.tag) == (new.kind, new.tag)
            and (view.role is TreeRole.MAINLINE or event.occurred_at >= new.occurred_at - _MOMENT)
            for event in active
        ):
            # The key of an event; with a number if the event was stored and reversed before
            key = event_log.free_key(new.key, {event.key for event in history})
            quote = quotes.get((current.report, current.sha), "") or new.title
            rows.append(event_log.event_row(report, replace(new, key=key), view.now, quote))
    return event_log.record(rows)


def _is_wrong(event: Event, current: CurrentState, view: View) -> bool:
    """Whether an event no longer holds: in the mainline, a tag was deleted or a branch rewound; elsewhere, a revert
    has left.
    """
    if view.role is not TreeRole.MAINLINE:
        return not current.is_present and current.part in (Part.REVERT, Part.UNDO)
    if current.event is None:
        return True
    return event.kind in VERSION_KINDS and (event.kind, event.tag) != (current.event.kind, current.event.tag)


def _reversal(report: Report, event: Event, view: View) -> Event:
    value = EventData(
        key=f"{EventKind.REVERSED}:{event.key}",
        kind=EventKind.REVERSED,
        occurred_at=view.now,
        commit=event.commit,
        tree=event.tree,
        reverses=event.key,
    )
    in_version = view.role is TreeRole.MAINLINE and event.kind in VERSION_KINDS
    quote = f"{event.tag} no longer has it" if in_version else f"{event.tree} no longer has it"
    return event_log.event_row(report, value, view.now, quote)


def relate(tree: Tree, matches: Iterable[Match], keys: Mapping[str, int]) -> None:
    """Store the commits that git relates with certainty."""
    rows = [
        RelatedCommit(
            report_id=match.report,
            commit_id=keys[match.commit.sha],
            part=match.part,
            undoes=match.undoes,
            rule=match.rule,
            quote=match.quote[:2000],
            tree=tree,
        )
        for match in matches
    ]
    RelatedCommit.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)


def suggest(view: View, uncertain: Sequence[Match]) -> None:
    """Suggest uncertain matches, once per title, whether it comes from mail or git."""
    suggested: set[tuple[int, str]] = set()
    for batch in in_parts({match.report for match in uncertain}):
        rows = Suggestion.objects.filter(report__in=batch).exclude(decision=Decision.ACCEPTED)
        suggested.update(rows.values_list("report", "title"))
    for match in uncertain:
        commit = match.commit
        event = view.suggested(commit.sha, commit.title, match.part, match.undoes)
        if event and (match.report, commit.title) not in suggested:
            suggested.add((match.report, commit.title))
            _store_suggestion(match.report, replace(event, key=f"git:{commit.sha}"), match.rule, match.quote)


def suggest_again(view: View, shas: Collection[str]) -> None:
    """Update the undecided suggestions whose commits have moved on; what was withdrawn waits again."""
    waiting = Suggestion.objects.filter(decision__in=UNDECIDED, message_id="").exclude(commit="").exclude(rule=_LEFT)
    for suggestion in waiting:
        if suggestion.commit not in shas:
            continue
        part = _PARTS.get(EventKind(suggestion.kind), Part.FIX)
        event = view.suggested(suggestion.commit, suggestion.title, part, suggestion.remark)
        if event and (event.kind in VERSION_KINDS or not suggestion.tag):
            Suggestion.objects.filter(pk=suggestion.pk, decision__in=UNDECIDED).update(
                kind=event.kind,
                occurred_at=event.occurred_at,
                tag=event.tag,
                tree=event.tree,
                decision=Decision.OPEN,
            )


def suggest_dropped(current_states: Iterable[CurrentState]) -> None:
    """Suggest that a culprit gone from linux-next was dropped. Withdraw that if it came back or was merged."""
    back: set[int] = set()
    for current in current_states:
        if current.event and current.event.kind is EventKind.GONE:
            quote = f"{current.sha[:12]} gone from {current.event.tree} since {current.event.tag}"
            event = replace(current.event, key=f"git:gone:{current.sha}", kind=EventKind.DROPPED, tag="", tree="")
            _store_suggestion(current.report, event, _LEFT, quote)
        elif current.event and current.event.kind in (EventKind.IN_NEXT, EventKind.MERGED, EventKind.LANDED):
            back.add(current.report)
    for batch in in_parts(back):
        Suggestion.objects.filter(report__in=batch, rule=_LEFT, decision__in=UNDECIDED).delete()


def _store_suggestion(report: int, event: EventData, rule: str, quote: str) -> None:
    fields = ("kind", "occurred_at", "role", "commit", "title", "tag", "tree", "remark")
    Suggestion.objects.get_or_create(
        report_id=report,
        key=event.key,
        defaults={**{name: getattr(event, name) for name in fields}, "quote": quote[:2000], "rule": rule},
    )


def suggested_commits() -> set[str]:
    """Return the commits of undecided suggestions."""
    rows = Suggestion.objects.filter(decision__in=UNDECIDED, message_id="").exclude(commit="")
    return set(rows.values_list("commit", flat=True))
