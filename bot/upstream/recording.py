"""What a walk concludes, into the database: related commits, events told once or taken back, and suggestions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.upstream.matching import Match
from bot.upstream.places import Place
from bot.upstream.telling import VERSION_KINDS, Subject, suggested, told, told_gone
from bot.upstream.tracked import Related, Tracked
from tracker import history, status
from tracker.happenings import Happening, Part
from tracker.models import Decision, Event, RelatedCommit, Report, Suggestion, Tree
from tracker.models.tree import TreeRole

_AT_ONCE = 500
_DEEPEST = 50  # reverts of reverts
_MOMENT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a walk found in one tree. `places`: of all followed commits there; `mainline`: the commits that a mainline
    has; `day`: the newest of linux-next's days.
    """

    tree: Tree
    tracked: Tracked
    places: Mapping[str, Place]
    titles: Mapping[str, str]
    mainline: Collection[str]
    day: str
    now: datetime

    @property
    def role(self) -> TreeRole:
        return TreeRole(self.tree.role)

    def now_so(self, shas: Collection[str]) -> Iterator[tuple[int, str, status.Event | None]]:
        """For each report that one of these commits has to do with, what is to be told: (report, sha, event)."""
        for sha in sorted(shas):
            place = self.places.get(sha)
            for related in self.tracked.related.get(sha, {}).values() if place else ():
                assert place
                yield related.report, sha, self._event(self._subject(sha, related), related.report, place)

    def _subject(self, sha: str, related: Related) -> Subject:
        others = self.tracked.commits[related.report].items()
        places = [self.places.get(each) for each, other in others if other.part is related.part and each != sha]
        return Subject(
            sha=sha,
            title=self.titles.get(sha) or related.title,
            part=related.part,
            depth=self._depth(sha, related.report),
            own=self.tracked.reports[related.report].sha == sha,
            not_before=max((place.gone_at for place in places if place and place.gone_at), default=None),
        )

    def _depth(self, sha: str, report: int) -> int:
        commits = self.tracked.commits.get(report, {})
        depth = 0
        while depth < _DEEPEST and sha in commits and commits[sha].undoes:
            sha, depth = commits[sha].undoes, depth + 1
        return depth

    def _event(self, subject: Subject, report: int, place: Place) -> status.Event | None:
        alike = [sha for sha, each in self.tracked.commits[report].items() if each.part is subject.part]
        if subject.sha in self.mainline or (
            subject.part is Part.CULPRIT and any(sha in self.mainline for sha in alike)
        ):
            return None  # it is past this tree
        if place.is_there:
            return told(subject, place, self.tree.name, self.role, self.now)
        if any(sha in self.mainline or self._has(sha) for sha in alike):
            return None  # under another sha it is on its way
        return told_gone(subject, self.tree.name, self.role, self.day, place.gone_at or self.now)

    def _has(self, sha: str) -> bool:
        place = self.places.get(sha)
        return place is not None and place.is_there


def record(found: Findings, shas: Collection[str]) -> int:
    """Tell what is new of these commits, and take back what was told and is not so. Returns how many events are new."""
    now_so = list(found.now_so(shas))
    reports = {pk for pk, _, _ in now_so}
    before = _told_before(reports)
    rows: list[Event] = []
    quotes = _quotes(reports)
    owners = {report.pk: report for some in _parts(reports) for report in Report.objects.filter(pk__in=some)}
    for pk, sha, event in now_so:
        known, taken = before.get((pk, sha, found.tree.name), ([], set()))
        for each in known:
            if found.role == TreeRole.MAINLINE and _is_wrong(each, event):
                rows.append(_taken_back(owners[pk], each, found))
        if event and not any(_is_same(each, event, found.role) for each in known):
            quote = quotes.get((pk, sha), "") or event.title
            rows.append(history.event_row(owners[pk], replace(event, key=_free_key(event, taken)), found.now, quote))
    return history.record(rows)


def _quotes(reports: Iterable[int]) -> dict[tuple[int, str], str]:
    """The words by which git's commits belong to these reports."""
    found: dict[tuple[int, str], str] = {}
    for some in _parts(reports):
        rows = RelatedCommit.objects.filter(report__in=some).values_list("report", "commit__sha", "quote")
        found.update({(report, sha): quote for report, sha, quote in rows})
    return found


Before = dict[tuple[int, str, str], tuple[list[Event], set[str]]]


def _told_before(reports: Iterable[int]) -> Before:
    """What git told of these reports until now, by report, commit and tree: the events that stand, and all keys."""
    found: Before = {}
    for some in _parts(reports):
        events = list(Event.objects.filter(report__in=some, message_id="", said_by="", result="").exclude(commit=""))
        undone = {(event.report_id, event.reverses) for event in events if event.reverses}
        for event in events:
            if event.reverses:
                continue
            tree = event.key.split(":")[1] if ":" in event.key else ""
            standing, keys = found.setdefault((event.report_id, event.commit, tree), ([], set()))
            keys.add(event.key)
            if (event.report_id, event.key) not in undone:
                standing.append(event)
    return found


def _is_wrong(known: Event, event: status.Event | None) -> bool:
    """Whether the mainline took back what it told: a tag was deleted, or a branch rewound."""
    if event is None:
        return True
    return known.kind in VERSION_KINDS and (known.kind, known.tag) != (event.kind, event.tag)


def _is_same(known: Event, event: status.Event, role: TreeRole) -> bool:
    """Whether it was told already; what came back to a tree is told again."""
    same = (known.kind, known.tag) == (event.kind, event.tag)
    return same and (role == TreeRole.MAINLINE or known.at >= event.at - _MOMENT)


def _free_key(event: status.Event, taken: Collection[str]) -> str:
    """The key of the fact; of one that was told and taken back, the next."""
    key, number = event.key, 1
    while key in taken:
        number += 1
        key = f"{event.key}#{number}"
    return key


def _taken_back(report: Report, known: Event, found: Findings) -> Event:
    value = status.Event(
        key=f"{Happening.REVERSED}:{known.key}",
        kind=Happening.REVERSED,
        at=found.now,
        commit=known.commit,
        tree=found.tree.name,
        reverses=known.key,
    )
    quote = f"{known.tag} holds it no longer" if known.kind in VERSION_KINDS else "the branch has it no longer"
    return history.event_row(report, value, found.now, quote)


def relate(tree: Tree, matches: Iterable[Match], keys: Mapping[str, int]) -> None:
    """Remember what git is sure of."""
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
    RelatedCommit.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_AT_ONCE)


def suggest(found: Findings, matches: Iterable[Match]) -> None:
    """Ask about what is not sure; once a title, be it by mail or by git."""
    for match in matches:
        title = match.commit.title
        place = found.places.get(match.commit.sha)
        asked = Suggestion.objects.filter(report=match.report, title=title)
        subject = Subject(match.commit.sha, title, match.part)
        event = suggested(subject, place, found.tree.name, found.role, found.now) if place else None
        if event is None or asked.exists():
            continue
        _ask(match.report, replace(event, key=f"git:{match.commit.sha}"), match.rule, match.quote)


def suggest_again(found: Findings, shas: Collection[str]) -> None:
    """Bring what still waits for a click up to date, where its commit went on."""
    waiting = Suggestion.objects.filter(decision=Decision.OPEN, message_id="", commit__in=list(shas))
    for each in waiting:
        part = Part.CULPRIT if each.kind == Happening.SAME_PATCH else Part.FIX
        place = found.places.get(each.commit)
        subject = Subject(each.commit, each.title, part)
        event = suggested(subject, place, found.tree.name, found.role, found.now) if place else None
        if event and (event.kind in VERSION_KINDS or not each.tag):
            Suggestion.objects.filter(pk=each.pk, decision=Decision.OPEN).update(
                kind=event.kind, at=event.at, tag=event.tag, tree=event.tree
            )


def suggest_dropped(found: Findings, shas: Collection[str]) -> None:
    """A culprit that left linux-next may have been dropped; a person knows. One that came back was not."""
    for pk, sha, event in found.now_so(shas):
        key = f"git:gone:{sha}"
        if event and event.kind is Happening.GONE:
            quote = f"{sha[:12]} is gone from {event.tree} since {event.tag}"
            _ask(pk, replace(event, key=key, kind=Happening.DROPPED, tag="", tree=""), "left_next", quote)
        elif event and event.kind is Happening.IN_NEXT:
            Suggestion.objects.filter(report=pk, key=key, decision=Decision.OPEN).delete()


def _ask(report: int, event: status.Event, rule: str, quote: str) -> None:
    fields = ("kind", "at", "by", "commit", "title", "tag", "tree", "remark")
    Suggestion.objects.get_or_create(
        report_id=report,
        key=event.key,
        defaults={**{name: getattr(event, name) for name in fields}, "quote": quote[:2000], "rule": rule},
    )


def waiting_commits() -> set[str]:
    """The commits of suggestions that wait for a click."""
    rows = Suggestion.objects.filter(decision=Decision.OPEN, message_id="").exclude(commit="")
    return set(rows.values_list("commit", flat=True))


def _parts(pks: Iterable[int]) -> Iterator[list[int]]:
    every = sorted(pks)
    return (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))
