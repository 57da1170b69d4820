"""Load what to look for in git: a handful of queries for all reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import F, Max, Q

from bot.mail.people.mailmap import Aliases
from bot.upstream.tracked import Expected, Related, Tracked, TrackedReport, plain
from bot.upstream.walk_checkpoint import Marks
from tracker.domain.events import EventData, EventKind, Part, TreeRole, Verdict
from tracker.domain.report_state.fold import effective_events
from tracker.models import Commit, Event, Landing, Message, OutgoingMail, RelatedCommit, Report, Tree
from tracker.services.sql.bulk import in_parts

# If the culprit's date is unknown, its fix may be this much older than the report.
_BEFORE_REPORT = timedelta(days=180)
# Rows of other workers may become visible out of order, so this many older ones count as new again.
_OVERLAP = 8
_FIRST = datetime(1991, 9, 17, tzinfo=UTC)  # Linux 0.01
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
# The parts of commits named in mail or by people.
_PART_BY_KIND = {
    EventKind.SAME_PATCH: Part.CULPRIT,
    EventKind.FIX_PROPOSED: Part.FIX,
    EventKind.FIX_CONFIRMED: Part.FIX,
    EventKind.FIX_QUEUED: Part.FIX,
    EventKind.FIX_MERGED: Part.FIX,
    EventKind.FIX_LANDED: Part.FIX,
    EventKind.DROPPED: Part.REVERT,
    EventKind.FIX_REVERTED: Part.UNDO,
}
# Relations of mail that only mentions a report: a commit that links to it fixes something else.
_MENTION_RELATIONS = ("culprit", "link")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is followed. `fresh`: the commits that are new since the last walk; `since`: how far back in git the new
    items may be named (None: there are none).
    """

    tracked: Tracked
    marks: Marks
    fresh: frozenset[str]
    since: datetime | None


def newest() -> Marks:
    """Return the highest id of each kind of row that names something to look for."""
    newest_of = {
        name: rows.aggregate(newest=Max("pk"))["newest"] or 0
        for name, rows in (
            ("report", Report.objects.order_by()),
            ("message", Message.objects.order_by()),
            ("outgoing", OutgoingMail.objects.order_by()),
            ("event", Event.objects.filter(_named_outside_git()).order_by()),
            ("related", RelatedCommit.objects.order_by()),
        )
    }
    return Marks(**newest_of)


def load_tracked(tree: Tree, previous: Marks, now: datetime, aliases: Aliases) -> Loaded:
    """Load all that is followed, and what of it is newer than `previous`, except what this tree itself reported."""
    marks = newest()
    tracked = Tracked()
    dates: list[datetime] = []
    fresh: set[str] = set()
    reported: dict[int, datetime] = {}
    for report, tag, reported_at in _reports(now, aliases):
        tracked.follow(report)
        tracked.pages[tag] = report.pk
        reported[report.pk] = reported_at or report.earliest_fix
        if _is_new(report.pk, previous.report, marks.report):
            fresh.add(report.sha)
            dates.append(report.earliest_fix)
    for merge, pk in _merges():
        tracked.merges.setdefault(merge, []).append(pk)
    for message_id, pk, since in _mails(previous, marks, reported, now):
        tracked.mails[message_id] = pk
        dates += [since] if since else []
    for sha, authored_at in _relate(tracked, tree, previous, marks):
        fresh.add(sha)
        dates.append(authored_at or now - _BEFORE_REPORT)
    reversed_events = _reversed_events()
    for pk, event in _events_naming_commits(reversed_events):
        for sha in _shas(event):
            tracked.relate(
                sha, Related(event.report_id, _PART_BY_KIND[EventKind(event.kind)], title=plain(event.title))
            )
        if _is_new(pk, previous.event, marks.event) and event.report_id in tracked.reports:
            fresh.update(_shas(event))
            dates.append(tracked.reports[event.report_id].earliest_fix)
    for expected in _expected(reversed_events):
        tracked.expect(expected)
    since = max(min(dates), _FIRST) if dates else None
    return Loaded(tracked, marks, frozenset(fresh), since)


def _is_new(pk: int, previous: int, newest: int) -> bool:
    return newest > previous and pk > previous - _OVERLAP


def _reports(now: datetime, aliases: Aliases) -> Iterator[tuple[TrackedReport, str, datetime | None]]:
    fields = (
        "pk",
        "tag",
        "verdict",
        "reported_at",
        "authors",
        "culprit__sha",
        "culprit__title",
        "culprit__author_name",
    )
    more = ("culprit__author_email", "culprit__authored_at", "culprit__patch_id")
    for row in Report.objects.values_list(*fields, *more).iterator(chunk_size=2000):
        pk, tag, verdict, reported_at, people, sha, title, name, email, authored_at, patch_id = row
        known = {*people, email.lower(), " ".join(name.lower().split())} - {""}
        reported_at = _past(reported_at, now)
        yield (
            TrackedReport(
                pk=pk,
                sha=sha,
                title=plain(title),
                authors=frozenset(each for one in known for each in aliases.of(one)),
                authored=(int(authored_at.timestamp()), email.lower()) if authored_at and email else None,
                patch_id=patch_id,
                improvement=verdict == Verdict.IMPROVEMENT,
                earliest_fix=_past(authored_at, now) or (reported_at or now) - _BEFORE_REPORT,
            ),
            tag,
            reported_at,
        )


def _past(date: datetime | None, now: datetime) -> datetime | None:
    """Return a date unless it is in the future."""
    return date if date and date <= now else None


def _mails(
    previous: Marks, marks: Marks, reported: Mapping[int, datetime], now: datetime
) -> Iterator[tuple[str, int, datetime | None]]:
    """Yield the mails of the reports' threads; for new ones, also the date since when a commit may name them. Dates
    before the report or in the future are not trusted.
    """
    filed = Message.objects.exclude(relation__in=_MENTION_RELATIONS)
    for message_id, report, pk, sent_at in filed.values_list("message_id", "report_id", "pk", "sent_at").iterator():
        if report in reported:
            since = max(_past(sent_at, now) or reported[report], reported[report])
            yield message_id, report, since if _is_new(pk, previous.message, marks.message) else None
    ours = OutgoingMail.objects.values_list("message_id", "report_id", "pk", "composed_at")
    for message_id, report, pk, composed_at in ours.iterator():
        if report in reported:
            yield message_id, report, composed_at if _is_new(pk, previous.outgoing, marks.outgoing) else None


def _merges() -> Iterator[tuple[str, int]]:
    """Yield the merges that brought culprits into a mainline."""
    landed = Landing.objects.filter(tree__role=TreeRole.MAINLINE, commit__report__isnull=False, gone_at=None)
    yield from landed.exclude(merge="").exclude(merge=F("commit__sha")).values_list("merge", "commit__report")


def _relate(tracked: Tracked, tree: Tree, previous: Marks, marks: Marks) -> Iterator[tuple[str, datetime | None]]:
    """Add the commits that git reported before, and culprits bisected in other trees. Yield those that another tree
    reported since the last walk: this one may hold their backports and reverts.
    """
    fields = ("pk", "tree_id", "commit__sha", "commit__title", "commit__authored_at", "report_id", "part", "undoes")
    for pk, tree_id, sha, title, authored_at, report, part, undoes in RelatedCommit.objects.values_list(
        *fields
    ).iterator():
        tracked.relate(sha, Related(report, Part(part), undoes, plain(title)))
        if tree_id != tree.pk and _is_new(pk, previous.related, marks.related):
            yield sha, authored_at
    joined = Commit.objects.filter(same_patch_as__report__isnull=False)
    for sha, title, report in joined.values_list("sha", "title", "same_patch_as__report__pk"):
        tracked.relate(sha, Related(report, Part.CULPRIT, title=plain(title)))


def _named_outside_git() -> Q:
    """Select events from mail, results and people, as opposed to git."""
    return Q(kind__in=list(_PART_BY_KIND)) & ~Q(message_id="", actor="", result="")


def _events_naming_commits(reversed_events: Collection[tuple[int, str]]) -> Iterator[tuple[int, Event]]:
    """Yield those that name a commit and are not reversed."""
    named = Event.objects.filter(_named_outside_git()).exclude(commit="", remark="")
    for event in named.only("pk", "report_id", "kind", "key", "commit", "remark", "title").iterator():
        if (event.report_id, event.key) not in reversed_events:
            yield event.pk, event


def _shas(event: Event) -> list[str]:
    """Return the commit of an event, or the one that a sentence names."""
    sha = event.commit or (event.remark if event.kind == EventKind.FIX_PROPOSED else "")
    return [sha.lower()] if _SHA.match(sha.lower()) else []


def _expected(reversed_events: Collection[tuple[int, str]]) -> Iterator[Expected]:
    """Yield the titles of fixes that were posted or named, with their authors; a command or a person means exactly
    this title.
    """
    proposed = Event.objects.filter(kind=EventKind.FIX_PROPOSED).exclude(title="")
    events = list(proposed.only("report_id", "key", "title", "message_id", "actor", "quote"))
    writers = _writers(event.message_id for event in events)
    for event in events:
        if (event.report_id, event.key) in reversed_events:
            continue
        exact_title = bool(event.actor) or event.quote == f"fix {event.title}"
        authors = None if exact_title else writers.get(event.message_id, frozenset())
        yield Expected(event.report_id, event.title, authors, event.quote)


def _writers(message_ids: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the authors of these mails, by address and by name."""
    found: dict[str, frozenset[str]] = {}
    for batch in in_parts({each for each in message_ids if each}):
        rows = Message.objects.filter(message_id__in=batch)
        for message_id, name, email in rows.values_list("message_id", "author_name", "author_email"):
            found[message_id] = frozenset({email.lower(), plain(name).lower()} - {""})
    return found


def _reversed_events() -> frozenset[tuple[int, str]]:
    """Return the events that are reversed, unless the reversal itself is."""
    reports = Event.objects.filter(kind=EventKind.REVERSED).values("report")
    events: dict[int, list[EventData]] = {}
    for event in Event.objects.filter(report__in=reports):
        events.setdefault(event.report_id, []).append(event.value())
    return frozenset(
        (report, key)
        for report, report_events in events.items()
        for key in {event.key for event in report_events} - {event.key for event in effective_events(report_events)}
    )
