"""Load what to look for in git: a handful of queries for all reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import F, Max, Q

from bot.mail.mailmap import Aliases
from bot.upstream.tracked import Expected, Related, Tracked, TrackedReport, plain
from bot.upstream.walk_checkpoint import Marks
from tracker.domain.events import EventData, EventKind, Part, TreeRole, Verdict
from tracker.domain.report_state.fold import effective_events
from tracker.models import Commit, Event, Landing, Message, OutgoingMail, RelatedCommit, Report, Tree
from tracker.services.bulk import in_parts

# If the culprit's date is unknown, its fix may be this much older than the report.
_BEFORE_REPORT = timedelta(days=180)
# Rows of other workers may become visible out of order, so this many older ones count as new again.
_OVERLAP = 8
_FIRST = datetime(1991, 9, 17, tzinfo=UTC)  # Linux 0.01
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
# The parts of commits named in mail or by people.
_SAID = {
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
_ELSEWHERE = ("culprit", "link")


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
            ("event", Event.objects.filter(_said()).order_by()),
            ("related", RelatedCommit.objects.order_by()),
        )
    }
    return Marks(**newest_of)


def load_tracked(tree: Tree, seen: Marks, now: datetime, aliases: Aliases) -> Loaded:
    """Load all that is followed, and what of it is newer than `seen`, except what this tree itself reported."""
    marks = newest()
    tracked = Tracked()
    dates: list[datetime] = []
    fresh: set[str] = set()
    reported: dict[int, datetime] = {}
    for report, tag, reported_at in _reports(now, aliases):
        tracked.follow(report)
        tracked.pages[tag] = report.pk
        reported[report.pk] = reported_at or report.born
        if _is_new(report.pk, seen.report, marks.report):
            fresh.add(report.sha)
            dates.append(report.born)
    for merge, pk in _merges():
        tracked.merges.setdefault(merge, []).append(pk)
    for message_id, pk, since in _mails(seen, marks, reported, now):
        tracked.mails[message_id] = pk
        dates += [since] if since else []
    for sha, authored_at in _relate(tracked, tree, seen, marks):
        fresh.add(sha)
        dates.append(authored_at or now - _BEFORE_REPORT)
    taken_back = _taken_back()
    for pk, event in _said_events(taken_back):
        for sha in _shas(event):
            tracked.relate(sha, Related(event.report_id, _SAID[EventKind(event.kind)], title=plain(event.title)))
        if _is_new(pk, seen.event, marks.event) and event.report_id in tracked.reports:
            fresh.update(_shas(event))
            dates.append(tracked.reports[event.report_id].born)
    for expected in _expected(taken_back):
        tracked.expect(expected)
    since = max(min(dates), _FIRST) if dates else None
    return Loaded(tracked, marks, frozenset(fresh), since)


def _is_new(pk: int, seen: int, newest: int) -> bool:
    return newest > seen and pk > seen - _OVERLAP


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
                born=_past(authored_at, now) or (reported_at or now) - _BEFORE_REPORT,
            ),
            tag,
            reported_at,
        )


def _past(told: datetime | None, now: datetime) -> datetime | None:
    """Return a date unless it is in the future."""
    return told if told and told <= now else None


def _mails(
    seen: Marks, marks: Marks, reported: Mapping[int, datetime], now: datetime
) -> Iterator[tuple[str, int, datetime | None]]:
    """Yield the mails of the reports' threads; for new ones, also the date since when a commit may name them. Dates
    before the report or in the future are not trusted.
    """
    filed = Message.objects.exclude(relation__in=_ELSEWHERE)
    for message_id, report, pk, sent_at in filed.values_list("message_id", "report_id", "pk", "sent_at").iterator():
        if report in reported:
            since = max(_past(sent_at, now) or reported[report], reported[report])
            yield message_id, report, since if _is_new(pk, seen.message, marks.message) else None
    ours = OutgoingMail.objects.values_list("message_id", "report_id", "pk", "composed_at")
    for message_id, report, pk, composed_at in ours.iterator():
        if report in reported:
            yield message_id, report, composed_at if _is_new(pk, seen.outgoing, marks.outgoing) else None


def _merges() -> Iterator[tuple[str, int]]:
    """Yield the merges that brought culprits into a mainline."""
    landed = Landing.objects.filter(tree__role=TreeRole.MAINLINE, commit__report__isnull=False, gone_at=None)
    yield from landed.exclude(merge="").exclude(merge=F("commit__sha")).values_list("merge", "commit__report")


def _relate(tracked: Tracked, tree: Tree, seen: Marks, marks: Marks) -> Iterator[tuple[str, datetime | None]]:
    """Add the commits that git reported before, and culprits bisected in other trees. Yield those that another tree
    reported since the last walk: this one may hold their backports and reverts.
    """
    fields = ("pk", "tree_id", "commit__sha", "commit__title", "commit__authored_at", "report_id", "part", "undoes")
    for pk, by, sha, title, authored_at, report, part, undoes in RelatedCommit.objects.values_list(*fields).iterator():
        tracked.relate(sha, Related(report, Part(part), undoes, plain(title)))
        if by != tree.pk and _is_new(pk, seen.related, marks.related):
            yield sha, authored_at
    joined = Commit.objects.filter(same_patch_as__report__isnull=False)
    for sha, title, report in joined.values_list("sha", "title", "same_patch_as__report__pk"):
        tracked.relate(sha, Related(report, Part.CULPRIT, title=plain(title)))


def _said() -> Q:
    """Select events from mail, results and people, as opposed to git."""
    return Q(kind__in=list(_SAID)) & ~Q(message_id="", actor="", result="")


def _said_events(taken_back: Collection[tuple[int, str]]) -> Iterator[tuple[int, Event]]:
    """Yield those that name a commit and are not reversed."""
    named = Event.objects.filter(_said()).exclude(commit="", remark="")
    for event in named.only("pk", "report_id", "kind", "key", "commit", "remark", "title").iterator():
        if (event.report_id, event.key) not in taken_back:
            yield event.pk, event


def _shas(event: Event) -> list[str]:
    """Return the commit of an event, or the one that a sentence names."""
    told = event.commit or (event.remark if event.kind == EventKind.FIX_PROPOSED else "")
    return [told.lower()] if _SHA.match(told.lower()) else []


def _expected(taken_back: Collection[tuple[int, str]]) -> Iterator[Expected]:
    """Yield the titles of fixes that were posted or named, with their authors; a command or a person means exactly
    this title.
    """
    proposed = Event.objects.filter(kind=EventKind.FIX_PROPOSED).exclude(title="")
    events = list(proposed.only("report_id", "key", "title", "message_id", "actor", "quote"))
    writers = _writers(event.message_id for event in events)
    for event in events:
        if (event.report_id, event.key) in taken_back:
            continue
        meant = bool(event.actor) or event.quote == f"fix {event.title}"
        authors = None if meant else writers.get(event.message_id, frozenset())
        yield Expected(event.report_id, event.title, authors, event.quote)


def _writers(message_ids: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the authors of these mails, by address and by name."""
    found: dict[str, frozenset[str]] = {}
    for some in in_parts({each for each in message_ids if each}):
        rows = Message.objects.filter(message_id__in=some)
        for message_id, name, email in rows.values_list("message_id", "author_name", "author_email"):
            found[message_id] = frozenset({email.lower(), plain(name).lower()} - {""})
    return found


def _taken_back() -> frozenset[tuple[int, str]]:
    """Return the events that are reversed, unless the reversal itself is."""
    reports = Event.objects.filter(kind=EventKind.REVERSED).values("report")
    events: dict[int, list[EventData]] = {}
    for event in Event.objects.filter(report__in=reports):
        events.setdefault(event.report_id, []).append(event.value())
    return frozenset(
        (report, key)
        for report, told in events.items()
        for key in {event.key for event in told} - {event.key for event in effective_events(told)}
    )
