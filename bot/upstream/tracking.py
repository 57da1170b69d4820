"""Following one tree, from git into the database: lease, fetch, load, walk, record.

`follow` is one pass over a tree. It takes the lease (and renews it while it walks), fetches, tracks, puts builds in
order, and gives the lease back. An error is stored on the tree, for its page; a failed fetch doesn't stop the walk of
what was fetched before. Unforeseen content in a hostile tree stops this tree only.

`track` loads all that is followed, in a handful of queries for all reports, and walks what is new since the tree's
checkpoint: further back where new reports, mails or events name something older, and from the beginning if a culprit
is older than its known date. Rows of other workers may become visible out of order, so a few older ones count as new
again.

Findings and checkpoint are stored in one transaction after git has finished, so that a walk of minutes doesn't block
other writers, and a crash leaves the tree as it was. A tree whose configuration changed is walked from its start.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from django.db import transaction
from django.db.models import F, Max, Q

from bot.git.inspection import patch_ids
from bot.git.repository import Busy, Unreadable, complaint, fetch, is_repository, read_refs, resolve
from bot.leases import acquire, extend, release
from bot.mail.patches import find_links
from bot.mail.settings import Aliases, BotSettings
from bot.upstream import backfill, landings, report_events
from bot.upstream.landings import LandingState, Marks, Route, Walked, load_checkpoint
from bot.upstream.matching import (
    Context,
    Expected,
    Match,
    Related,
    Seen,
    Tracked,
    TrackedReport,
    lookalikes,
    match_all,
    plain,
)
from bot.upstream.report_events import View
from tracker.domain import versions
from tracker.domain.events import EventKind, Part, TreeRole, Verdict
from tracker.domain.report_state import NOT_KNOWN
from tracker.models import Commit, Event, Landing, Message, OutgoingMail, RelatedCommit, Report, Tree
from tracker.services import database, event_log
from tracker.services.catalog import tree_for
from tracker.services.database import Lock, in_parts
from tracker.services.report_summary import refresh

log = logging.getLogger(__name__)

# --- Configured trees ---


@dataclass(frozen=True, slots=True)
class ConfiguredTree:
    """A tree of PERFWORK_TREES. `branches`: patterns, "" for all; `role`: None where the settings name none."""

    name: str
    path: str
    branches: str = ""
    role: str | None = None


def store_trees(configured: Iterable[ConfiguredTree]) -> list[Tree]:
    """Store what is configured, and return the rows. A tree whose configuration changed is walked from its start."""
    trees: list[Tree] = []
    for wanted in configured:
        tree = tree_for(wanted.name)
        assert tree
        role = tree.role if wanted.role is None else wanted.role
        if (tree.path, tree.branches, tree.role) != (wanted.path, wanted.branches, role):
            tree.path, tree.branches, tree.role, tree.cursor = wanted.path, wanted.branches, role, ""
            tree.save(update_fields=["path", "branches", "role", "cursor"])
            refresh(tree.reports.values_list("pk", flat=True))  # the role decides the section of the release's table
        trees.append(tree)
    return trees


# --- What to look for ---

# If the culprit's date is unknown, its fix may be this much older than the report.
_BEFORE_REPORT = timedelta(days=180)
# Rows of other workers may become visible out of order, so this many older ones count as new again.
_OVERLAP = 8
_FIRST = datetime(1991, 9, 17, tzinfo=UTC)  # Linux 0.01
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
# The parts of commits named in mail or by people.
_PART_BY_KIND = {
    EventKind.SAME_PATCH: Part.CULPRIT,
    EventKind.BISECTED: Part.CULPRIT,
    EventKind.FIX_PROPOSED: Part.FIX,
    EventKind.FIX_CONFIRMED: Part.FIX,
    EventKind.FIX_QUEUED: Part.FIX,
    EventKind.FIX_MERGED: Part.FIX,
    EventKind.FIX_LANDED: Part.FIX,
    EventKind.DROPPED: Part.REVERT,
    EventKind.FIX_REVERTED: Part.UNDO,
}
# Events from mail, results and people, as opposed to git
_NAMED_OUTSIDE_GIT = Q(kind__in=list(_PART_BY_KIND)) & ~Q(message_id="", actor="", result="")
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


def _newest() -> Marks:
    """Return the highest id of each kind of row that names something to look for."""
    kinds = (
        ("report", Report.objects.order_by()),
        ("message", Message.objects.order_by()),
        ("outgoing", OutgoingMail.objects.order_by()),
        ("event", Event.objects.filter(_NAMED_OUTSIDE_GIT).order_by()),
        ("related", RelatedCommit.objects.order_by()),
    )
    return Marks(**{name: rows.aggregate(newest=Max("pk"))["newest"] or 0 for name, rows in kinds})


def load_tracked(tree: Tree, previous: Marks, now: datetime, aliases: Aliases) -> Loaded:
    """Load all that is followed, and what of it is newer than `previous`, except what this tree itself reported."""
    marks = _newest()
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
    # The merges that brought culprits into a mainline
    landed = Landing.objects.filter(tree__role=TreeRole.MAINLINE, commit__report__isnull=False, gone_at=None)
    landed = landed.exclude(merge="").exclude(merge=F("commit__sha"))
    for merge, pk in landed.values_list("merge", "commit__report"):
        tracked.merges.setdefault(merge, []).append(pk)
    for message_id, pk, since in _mails(previous, marks, reported, now):
        tracked.mails[message_id] = pk
        if since:
            dates.append(since)
    for sha, authored_at in _relate(tracked, tree, previous, marks):
        fresh.add(sha)
        dates.append(authored_at or now - _BEFORE_REPORT)
    reversed_events = event_log.reversed_events(Event.objects.filter(kind=EventKind.REVERSED).values("report"))
    named = Event.objects.filter(_NAMED_OUTSIDE_GIT).exclude(commit="", remark="")
    for event in named.only("pk", "report_id", "kind", "key", "commit", "remark", "title").iterator():
        if (event.report_id, event.key) in reversed_events:
            continue
        kind = EventKind(event.kind)
        sha = (event.commit or (event.remark if kind is EventKind.FIX_PROPOSED else "")).lower()  # or in a sentence
        shas = [sha] if _SHA.match(sha) else []
        tracked.name(event.report_id, _PART_BY_KIND[kind], shas, find_links(event.remark), plain(event.title))
        if _is_new(event.pk, previous.event, marks.event) and event.report_id in tracked.reports:
            fresh.update(shas)
            dates.append(tracked.reports[event.report_id].earliest_fix)
    for expected in _expected(reversed_events):
        tracked.expect(expected)
    since = max(min(dates), _FIRST) if dates else None
    return Loaded(tracked, marks, frozenset(fresh), since)


def _is_new(pk: int, previous: int, newest: int) -> bool:
    return newest > previous and pk > previous - _OVERLAP


def _reports(now: datetime, aliases: Aliases) -> Iterator[tuple[TrackedReport, str, datetime | None]]:
    fields = ("pk", "tag", "verdict", "reported_at", "authors", "culprit__sha", "culprit__title")
    more = ("culprit__author_name", "culprit__author_email", "culprit__authored_at", "culprit__patch_id")
    for row in Report.objects.values_list(*fields, *more).iterator(chunk_size=2000):
        pk, tag, verdict, reported_at, people, sha, title, name, email, authored_at, patch_id = row
        identities = {*people, email.lower(), " ".join(name.lower().split())} - {""}
        reported_at = _past(reported_at, now)
        yield (
            TrackedReport(
                pk=pk,
                sha=sha,
                title=plain(title),
                authors=frozenset(alias for one in identities for alias in aliases.of(one)),
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


def _relate(tracked: Tracked, tree: Tree, previous: Marks, marks: Marks) -> Iterator[tuple[str, datetime | None]]:
    """Add the commits that git reported before, and culprits bisected in other trees. Yield those that another tree
    reported since the last walk: this one may hold their backports and reverts.
    """
    fields = ("pk", "tree_id", "commit__sha", "commit__title", "commit__authored_at", "report_id", "part", "undoes")
    for row in RelatedCommit.objects.values_list(*fields).iterator():
        pk, tree_id, sha, title, authored_at, report, part, undoes = row
        tracked.relate(sha, Related(report, Part(part), undoes, plain(title)))
        if tree_id != tree.pk and _is_new(pk, previous.related, marks.related):
            yield sha, authored_at
    joined = Commit.objects.filter(same_patch_as__report__isnull=False)
    for sha, title, report in joined.values_list("sha", "title", "same_patch_as__report__pk"):
        tracked.relate(sha, Related(report, Part.CULPRIT, title=plain(title)))


def _expected(reversed_events: Collection[tuple[int, str]]) -> Iterator[Expected]:
    """Yield the titles of fixes that were posted or named, with their authors; a command or a person means exactly
    this title.
    """
    proposed = Event.objects.filter(kind=EventKind.FIX_PROPOSED).exclude(title="")
    events = list(proposed.only("report_id", "key", "title", "message_id", "actor", "quote"))
    # The authors of these mails, by address and by name
    writers: dict[str, frozenset[str]] = {}
    for batch in in_parts({event.message_id for event in events if event.message_id}):
        rows = Message.objects.filter(message_id__in=batch)
        for message_id, name, email in rows.values_list("message_id", "author_name", "author_email"):
            writers[message_id] = frozenset({email.lower(), plain(name).lower()} - {""})
    for event in events:
        if (event.report_id, event.key) in reversed_events:
            continue
        exact_title = bool(event.actor) or event.quote == f"fix {event.title}"
        authors = None if exact_title else writers.get(event.message_id, frozenset())
        yield Expected(event.report_id, event.title, authors, event.quote)


# --- Tracking a tree ---

SHA_LENGTH = 40  # digits of a sha


@dataclass(frozen=True, slots=True)
class TrackTally:
    """What was new in a walk."""

    landings: int = 0
    events: int = 0
    unchanged: bool = False


def _nothing(count: int = 0) -> None:
    pass


def track(
    tree: Tree,
    settings: BotSettings,
    now: datetime,
    others: Sequence[Path] = (),
    progress: Callable[[int], None] = _nothing,
    check_lease: Callable[[], None] = _nothing,
) -> TrackTally:
    """Walk what is new in one tree. `others`: clones that may hold a commit whose patch-id is needed; `check_lease`
    raises if another worker has taken the tree over.

    The findings and the checkpoint are stored in one transaction after git has finished, so that a walk of minutes
    doesn't block other writers. Raise Unreadable if git can't read the tree; nothing is stored then.
    """
    repository = Path(tree.path)
    if not tree.path or not is_repository(repository):
        raise Unreadable(f"{tree.name}: {tree.path}: {complaint(repository)}, or correct PERFWORK_TREES")
    checkpoint = load_checkpoint(tree.cursor)
    route = Route(repository, TreeRole(tree.role), read_refs(repository), checkpoint, tree.branches)
    if tree.branches and not route.heads:
        raise Unreadable(f"{tree.name}: {tree.path}: no branch matches {tree.branches}; correct it in PERFWORK_TREES")
    loaded = load_tracked(tree, checkpoint.marks, now, settings.aliases)
    next_checkpoint = route.next_checkpoint(loaded.marks)
    if next_checkpoint == checkpoint:
        return TrackTally(unchanged=True)
    states = landings.known_states(tree)
    _complete_shas(repository, loaded)
    walked = _walk(route, loaded, states, settings, progress)
    matches = _match(walked.seen, loaded, settings, repository, others)
    changed = _changed(route, loaded, walked, states, matches, now)
    bases, written_by = backfill.find_bases(repository, route.refs), backfill.find(repository)
    with transaction.atomic():
        database.take(Lock.TREE_WALK)
        check_lease()
        events = _store(tree, route, loaded, states, matches, changed, now)
        backfill.store_bases(bases)
        backfill.store(written_by)
        Tree.objects.filter(pk=tree.pk).update(cursor=next_checkpoint.dump(), walked_at=now)
        if route.role is TreeRole.MAINLINE and tree.walked_at is None:  # from now on "not merged" is known
            unknown = Report.objects.filter(landing="")
        elif route.role is TreeRole.MAINLINE:  # and of those that the last walk was too old for
            unknown = Report.objects.filter(landing="", status__startswith=NOT_KNOWN)
        else:
            unknown = Report.objects.none()
        for part in database.in_parts(unknown.values_list("pk", flat=True)):
            event_log.refold(part)
    tree.cursor = next_checkpoint.dump()
    return TrackTally(sum(1 for state in changed.values() if state.is_present), events)


def _complete_shas(repository: Path, loaded: Loaded) -> None:
    """Replace abbreviated shas, as given in old reports, by the full ones that the tree knows."""
    short = [sha for sha in loaded.tracked.related if len(sha) < SHA_LENGTH]
    learned = resolve(repository, short) if short else {}
    for short_sha, full_sha in learned.items():
        loaded.tracked.set_full_sha(short_sha, full_sha)
        if not Commit.objects.filter(sha=full_sha).exists():
            Commit.objects.filter(sha=short_sha).update(sha=full_sha)
    if learned:  # report summaries hold the sha for searching
        refresh(Report.objects.filter(culprit__sha__in=learned.values()).values_list("pk", flat=True))


def _walk(
    route: Route,
    loaded: Loaded,
    states: Mapping[str, LandingState],
    settings: BotSettings,
    progress: Callable[[int], None],
) -> Walked:
    """Walk as far back as the new items need it; from the beginning if a culprit is older than its known date."""
    lost, late = route.lost_tags, route.late_tags
    unsure = [
        state.merged_at or state.at
        for state in states.values()
        # Its first tag may have changed: it was deleted, or an older one came late.
        if state.tag in lost or (late and (version := versions.parse(state.tag)) is not None and version > min(late))
    ]
    since = min([date for date in (loaded.since, *unsure) if date], default=None)
    behind = landings.border(route, since)
    walked = landings.walk(route, loaded.tracked, settings, behind, progress)
    if route.role is not TreeRole.NEXT and since and landings.hidden(route, walked, loaded.fresh, behind):
        return landings.walk(route, loaded.tracked, settings, (), progress)
    return walked


def _match(
    seen: Sequence[Seen], loaded: Loaded, settings: BotSettings, repository: Path, others: Sequence[Path]
) -> list[Match]:
    named = {sha for entry in seen for sha, _ in entry.named.reverts}
    alike = lookalikes(seen, loaded.tracked)
    context = Context(
        tracked=loaded.tracked,
        robots=settings.robots | {settings.address},
        patch_ids=patch_ids([repository, *others], alike) if alike else {},
        existing_shas=set(resolve(repository, named)) if named else (),
    )
    return match_all(seen, context)


def _changed(
    route: Route,
    loaded: Loaded,
    walked: Walked,
    states: Mapping[str, LandingState],
    matches: Sequence[Match],
    now: datetime,
) -> dict[str, LandingState]:
    """Return the landing states of followed commits that are new or changed."""
    shas = {*loaded.tracked.related, *report_events.suggested_commits(), *(match.commit.sha for match in matches)}
    after = landings.last_version(route) if route.role is TreeRole.MAINLINE and route.heads else ""
    lost = route.lost_tags
    # Commits that may be gone: untagged ones of the mainline, all of those in the trees that feed it
    unsafe = {
        sha
        for sha, state in states.items()
        if sha not in walked.graph and state.is_present and route.role is not TreeRole.STABLE
        if route.role is not TreeRole.MAINLINE or not state.tag or state.tag in lost
    }
    seen, gone = landings.landing_states(walked, shas, after), landings.left_behind(route, unsafe)
    changed: dict[str, LandingState] = {}
    for sha in {*states, *seen}:
        old = states.get(sha)
        state = landings.revised(old, seen.get(sha), lost, now, needs_branch=route.role is TreeRole.NEXT)
        if sha in gone and state and state.is_present:
            state = replace(state, gone_at=now)
        if state and state != old:
            changed[sha] = state
    return changed


def _store(
    tree: Tree,
    route: Route,
    loaded: Loaded,
    states: Mapping[str, LandingState],
    matches: Sequence[Match],
    changed: Mapping[str, LandingState],
    now: datetime,
) -> int:
    """Store everything new of a finished walk. Return the number of events."""
    tracked, sure = loaded.tracked, [match for match in matches if match.sure]
    rows: dict[str, Commit] = {}  # of the matched commits, as in the log
    for commit in (match.commit for match in matches):
        names = {"author_name": commit.author_name[:300], "author_email": commit.author_email[:300]}
        rows[commit.sha] = Commit(sha=commit.sha, title=commit.title[:1000], authored_at=commit.authored_at, **names)
    shas = {*changed, *(match.commit.sha for match in sure)}
    keys = landings.ensure_commits({sha: rows.get(sha) or Commit(sha=sha) for sha in shas})
    landings.store(tree, changed, keys, now)
    report_events.relate(tree, sure, keys)
    if route.role is TreeRole.MAINLINE:
        backfill.store_releases(route.refs.versions)
    view = View(
        tree=tree.name,
        role=route.role,
        tracked=tracked,
        landings={**states, **changed},
        titles={match.commit.sha: match.commit.title for match in matches},
        mainline=landings.in_mainline(tracked.related) if route.role is not TreeRole.MAINLINE else (),
        day=route.refs.days[-1].name if route.refs.days else "",
        now=now,
    )
    # A commit that is known only by an abbreviated sha is not in this tree.
    fresh = {sha for sha in loaded.fresh if len(sha) >= SHA_LENGTH}
    current_states = list(view.current_states(shas | fresh))
    events = report_events.record(view, current_states)
    report_events.suggest(view, [match for match in matches if not match.sure])
    report_events.suggest_again(view, changed)
    report_events.suggest_dropped(current_states)
    affected = {report for sha in (*shas, *loaded.fresh) for report in tracked.related.get(sha, ())}
    others = landings.store_series(tree, route.refs.versions)  # may carry anything
    landings.update_series(tracked, tracked.reports if others else affected)
    return events


# --- One pass over a tree ---

_RENEW_EVERY = 100_000  # commits between renewals of the lease


@dataclass(frozen=True, slots=True)
class Patience:
    """`fetch`: seconds for a fetch, None for no fetch; `lease`: how long a worker that has died keeps others away."""

    fetch: float | None
    lease: timedelta
    fetch_interval: timedelta = timedelta(0)  # between two fetches


def follow(
    tree: Tree,
    settings: BotSettings,
    now: datetime,
    patience: Patience,
    others: Sequence[Path] = (),
    progress: Callable[[int], None] = lambda count: None,
) -> tuple[TrackTally, str]:
    """Fetch and walk a tree. Return what was new, and why the fetch failed ("" if it didn't; the walk goes on anyway).

    Raise Busy if another worker has the tree, Unreadable if it can't be walked.
    """
    acquire(tree, patience.lease + timedelta(seconds=patience.fetch or 0))
    lease_time = patience.lease
    fetch_error = ""

    def report_progress(count: int) -> None:
        """Report progress, and renew the lease now and then."""
        progress(count)
        if count % _RENEW_EVERY == 0:
            extend(tree, lease_time)

    try:
        try:
            due = tree.fetched_at is None or now - tree.fetched_at >= patience.fetch_interval
            if patience.fetch is not None and tree.path and due:
                Tree.objects.filter(pk=tree.pk).update(fetched_at=now)
                fetch(Path(tree.path), patience.fetch)
        except (Unreadable, OSError) as error:
            fetch_error = f"{tree.name}: {error}; walked the commits fetched before"
        tally = track(tree, settings, now, others, report_progress, partial(extend, tree, lease_time))
        backfill.order_builds(tree, now)
        Tree.objects.filter(pk=tree.pk).update(looked_at=now)
        _store_error(tree, fetch_error)
        return tally, fetch_error
    except Busy:
        raise  # the tree's error is for the other worker to set
    except (Unreadable, OSError) as error:
        _store_error(tree, str(error))
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Unforeseen content in a hostile tree: the other trees go on, and the log has the traceback.
        log.exception("%s", tree)
        _store_error(tree, f"{tree}: {type(error).__name__}: {error}; this is a bug, please report it")
        raise Unreadable(tree.error) from error
    finally:
        release(tree)


def _store_error(tree: Tree, error: str) -> None:
    tree.error = " ".join(error.split())[:1000]
    Tree.objects.filter(pk=tree.pk).exclude(error=tree.error).update(error=tree.error)
