"""Store what a walk concludes: related commits, events once or reversed, and suggestions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.upstream.matching import Match
from bot.upstream.report_events import VERSION_KINDS, Now, View
from tracker.domain.events import EventData, EventKind, Part, TreeRole
from tracker.models import Decision, Event, RelatedCommit, Report, Suggestion, Tree
from tracker.services.reports import event_log
from tracker.services.sql.bulk import in_parts

_MOMENT = timedelta(seconds=1)


def record(view: View, current_states: Sequence[Now]) -> int:
    """Store new events, and reverse those that no longer hold. Return the number of events stored."""
    reports = {each.report for each in current_states}
    before = _reported_before(reports)
    quotes = _quotes(reports)
    reports_by_pk = {report.pk: report for batch in in_parts(reports) for report in Report.objects.filter(pk__in=batch)}
    rows: list[Event] = []
    for current in current_states:
        known = before.get((current.report, current.sha, view.tree), _Before([], set()))
        rows += [
            _reversal(reports_by_pk[current.report], each, view)
            for each in known.active
            if _is_wrong(each, current, view)
        ]
        if current.event and not any(_is_same(each, current.event, view.role) for each in known.active):
            quote = quotes.get((current.report, current.sha), "") or current.event.title
            event = replace(current.event, key=_free_key(current.event, known.keys))
            rows.append(event_log.event_row(reports_by_pk[current.report], event, view.now, quote))
    return event_log.record(rows)


def _quotes(reports: Iterable[int]) -> dict[tuple[int, str], str]:
    """Return the words that relate git's commits to these reports."""
    found: dict[tuple[int, str], str] = {}
    for batch in in_parts(reports):
        rows = RelatedCommit.objects.filter(report__in=batch).values_list("report", "commit__sha", "quote")
        found.update({(report, sha): quote for report, sha, quote in rows})
    return found


@dataclass(frozen=True, slots=True)
class _Before:
    """What one tree has reported of a commit and a report: the events that hold, and the keys of all."""

    active: list[Event]
    keys: set[str]


def _reported_before(reports: Iterable[int]) -> dict[tuple[int, str, str], _Before]:
    """Return events by report, commit and tree. Only git reverses what git reported."""
    found: dict[tuple[int, str, str], _Before] = {}
    for batch in in_parts(reports):
        events = list(Event.objects.filter(report__in=batch, message_id="", actor="", result="").exclude(commit=""))
        undone = {(event.report_id, event.reverses) for event in events if event.reverses}
        for event in events:
            if event.reverses:
                continue
            _, _, rest = event.key.partition(":")
            known = found.setdefault((event.report_id, event.commit, rest.partition(":")[0]), _Before([], set()))
            known.keys.add(event.key)
            if (event.report_id, event.key) not in undone:
                known.active.append(event)
    return found


def _is_wrong(known: Event, current: Now, view: View) -> bool:
    """Whether an event no longer holds: in the mainline, a tag was deleted or a branch rewound; elsewhere, a revert
    has left.
    """
    if view.role is not TreeRole.MAINLINE:
        return not current.is_present and current.part in (Part.REVERT, Part.UNDO)
    if current.event is None:
        return True
    return known.kind in VERSION_KINDS and (known.kind, known.tag) != (current.event.kind, current.event.tag)


def _is_same(known: Event, event: EventData, role: TreeRole) -> bool:
    """Whether the event is stored already. A commit that came back to a tree gets a new one."""
    same = (known.kind, known.tag) == (event.kind, event.tag)
    return same and (role is TreeRole.MAINLINE or known.occurred_at >= event.occurred_at - _MOMENT)


def _free_key(event: EventData, taken: Collection[str]) -> str:
    """Return the key of an event; with a number if the event was stored and reversed before."""
    key, number = event.key, 1
    while key in taken:
        number += 1
        key = f"{event.key}#{number}"
    return key


def _reversal(report: Report, known: Event, view: View) -> Event:
    value = EventData(
        key=f"{EventKind.REVERSED}:{known.key}",
        kind=EventKind.REVERSED,
        occurred_at=view.now,
        commit=known.commit,
        tree=known.tree,
        reverses=known.key,
    )
    in_version = view.role is TreeRole.MAINLINE and known.kind in VERSION_KINDS
    quote = f"{known.tag} no longer has it" if in_version else f"{known.tree} no longer has it"
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


def suggest(view: View, matches: Iterable[Match]) -> None:
    """Suggest uncertain matches, once per title, whether it comes from mail or git."""
    uncertain = list(matches)
    suggested: set[tuple[int, str]] = set()
    for batch in in_parts({match.report for match in uncertain}):
        known = Suggestion.objects.filter(report__in=batch).exclude(decision=Decision.ACCEPTED)
        suggested.update(known.values_list("report", "title"))
    for match in uncertain:
        commit = match.commit
        event = view.suggested(commit.sha, commit.title, match.part, match.undoes)
        if event and (match.report, commit.title) not in suggested:
            suggested.add((match.report, commit.title))
            _store_suggestion(match.report, replace(event, key=f"git:{commit.sha}"), match.rule, match.quote)


def suggest_again(view: View, shas: Collection[str]) -> None:
    """Update the open suggestions whose commits have moved on."""
    for each in Suggestion.objects.filter(decision=Decision.OPEN, message_id="").exclude(commit="").exclude(rule=_LEFT):
        part = _PARTS.get(EventKind(each.kind), Part.FIX)
        event = view.suggested(each.commit, each.title, part, each.remark) if each.commit in shas else None
        if event and (event.kind in VERSION_KINDS or not each.tag):
            Suggestion.objects.filter(pk=each.pk, decision=Decision.OPEN).update(
                kind=event.kind, occurred_at=event.occurred_at, tag=event.tag, tree=event.tree
            )


_LEFT = "left_next"
_PARTS = {EventKind.SAME_PATCH: Part.CULPRIT, EventKind.DROPPED: Part.REVERT, EventKind.FIX_REVERTED: Part.UNDO}


def suggest_dropped(current_states: Iterable[Now]) -> None:
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
        Suggestion.objects.filter(report__in=batch, rule=_LEFT, decision=Decision.OPEN).delete()


def _store_suggestion(report: int, event: EventData, rule: str, quote: str) -> None:
    fields = ("kind", "occurred_at", "role", "commit", "title", "tag", "tree", "remark")
    Suggestion.objects.get_or_create(
        report_id=report,
        key=event.key,
        defaults={**{name: getattr(event, name) for name in fields}, "quote": quote[:2000], "rule": rule},
    )


def suggested_commits() -> set[str]:
    """Return the commits of open suggestions."""
    rows = Suggestion.objects.filter(decision=Decision.OPEN, message_id="").exclude(commit="")
    return set(rows.values_list("commit", flat=True))
