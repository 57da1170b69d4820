"""What a tree says of our reports, into the database: landings of culprits, fixes, reverts, and releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from bot.errors import Unreadable
from bot.git import is_repository
from bot.identity import Identity
from bot.upstream import walk
from tracker import history, versions
from tracker.models import Commit, Event, Landing, Message, OutgoingMail, Release, Report, Tree
from tracker.models.tree import TreeRole
from tracker.status import Event as EventValue
from tracker.status import Happening

# A fix is looked for from this long before its report on: it may have been written for another reporter.
_BEFORE_REPORT = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class TrackTally:
    """What a walk found that was new."""

    landings: int = 0
    events: int = 0
    unchanged: bool = False


def track(tree: Tree, identity: Identity, now: datetime) -> TrackTally:
    """Walk one tree. What it finds and where it stands are stored in one transaction, after git has done its work:
    a walk of minutes must not keep others from writing.
    """
    repository = Path(tree.path)
    if not tree.path or not is_repository(repository):
        raise Unreadable(f"{tree.name}: {tree.path}: not a git repository; set PERFWORK_TREES to a clone of it")
    cursor = f"{walk.refs_digest(repository)} {_what_we_track()}"
    if cursor == tree.cursor:
        return TrackTally(unchanged=True)
    found = _Walk(tree, repository, identity, now)
    with transaction.atomic():
        if tree.role == TreeRole.MAINLINE:
            _store_releases(found.tags)
        landings, events = found.store()
        Tree.objects.filter(pk=tree.pk).update(cursor=cursor, error="")
    return TrackTally(landings, events)


def _what_we_track() -> str:
    """Changes whenever there is a report, a message or a fix more to look for."""
    newest = (
        rows.order_by("-pk").values_list("pk", flat=True).first() or 0
        for rows in (
            Report.objects,
            Message.objects,
            OutgoingMail.objects,
            Event.objects.filter(kind__startswith="fix"),
        )
    )
    return "/".join(str(pk) for pk in newest)


def _store_releases(tags: tuple[walk.Tag, ...]) -> None:
    """Every cycle that the tags show, with its date once it is released."""
    for tag in tags:
        version = versions.parse(tag.name)
        if version is None or version.update:
            continue
        whole = versions.parse(version.cycle)
        assert whole
        release, _ = Release.objects.get_or_create(version=version.cycle, defaults={"number": whole.number})
        if version.is_release and release.released_at is None:
            release.released_at = tag.at
            release.save(update_fields=["released_at"])


class _Walk:
    """One pass over a tree: loads what is tracked, asks git for all of it at once, then tells it as events."""

    def __init__(self, tree: Tree, repository: Path, identity: Identity, now: datetime) -> None:
        self.tree, self.now = tree, now
        self.reports = list(Report.objects.select_related("culprit", "tree"))
        self.by_page = {report.tag: report for report in self.reports}
        self.by_title = {report.fix_title: report for report in self.reports if report.fix_title}
        self.by_message = self._messages()
        self.tags = walk.version_tags(repository)
        shas = {report.culprit.sha for report in self.reports}
        self.full = walk.resolve(repository, shas)
        self.by_sha = {self.full.get(report.culprit.sha, report.culprit.sha): report for report in self.reports}
        dates = [report.reported_at for report in self.reports if report.reported_at]
        since = min(dates, default=now) - _BEFORE_REPORT
        told = walk.telling_commits(repository, since, self.by_title, identity)
        self.commits = [commit for commit in told if self._fixed_by(commit) or self._reverted_by(commit)]
        asked = {*self.full.values(), *(commit.sha for commit in self.commits)}
        self.landed = walk.first_tags(repository, asked, self.tags)

    def _messages(self) -> dict[str, Report]:
        by_pk = {report.pk: report for report in self.reports}
        return {
            message_id: by_pk[pk]
            for rows in (OutgoingMail.objects, Message.objects)
            for message_id, pk in rows.values_list("message_id", "report_id")
            if pk in by_pk
        }

    def store(self) -> tuple[int, int]:
        """Everything new into the database: how many landings, how many events."""
        for known, sha in self.full.items():
            if known != sha:  # until now only the beginning of the sha was known
                Commit.objects.filter(sha=known).update(sha=sha)
        rows = [*self._culprits_landed(), *(row for commit in self.commits for row in self._told_by(commit))]
        return self._store_landings(), history.record(rows)

    @property
    def _is_mainline(self) -> bool:
        return self.tree.role == TreeRole.MAINLINE

    def _culprits_landed(self) -> Iterator[Event]:
        for sha, report in self.by_sha.items():
            if self._is_mainline and (tag := self.landed.get(sha)):
                yield self._event(report, Happening.LANDED, sha, tag.at, tag=tag.name)

    def _told_by(self, commit: walk.GitCommit) -> Iterator[Event]:
        """What a commit does to reports: it reverts a culprit, or it is a fix."""
        tag = self.landed.get(commit.sha) if self._is_mainline else None
        undone = self._reverted_by(commit)
        reports = list(dict.fromkeys([*([undone] if undone else []), *self._fixed_by(commit)]))
        for report in reports:
            if self.by_sha.get(commit.sha) == report:
                continue  # the culprit itself
            if not tag:  # on its way; it counts when a version of the mainline has it
                yield self._event(report, Happening.FIX_QUEUED, commit.sha, commit.at, title=commit.title)
            elif report == undone:
                yield self._event(report, Happening.DROPPED, commit.sha, tag.at, title=commit.title, tag=tag.name)
            else:
                yield self._event(report, Happening.FIX_LANDED, commit.sha, tag.at, title=commit.title, tag=tag.name)

    def _fixed_by(self, commit: walk.GitCommit) -> list[Report]:
        """The reports that a commit fixes: named by Closes:, Link: or our tag, or expected by its title."""
        found = [self.by_message.get(message_id) for message_id in commit.closes]
        found += [self.by_page.get(page) or self._by_beginning(page) for page in commit.pages]
        found.append(self.by_title.get(commit.title))
        return list(dict.fromkeys(report for report in found if report))

    def _reverted_by(self, commit: walk.GitCommit) -> Report | None:
        return self._by_beginning(commit.reverts)

    def _by_beginning(self, sha: str) -> Report | None:
        if len(sha) < 7:
            return None
        return self.by_sha.get(sha) or next((each for full, each in self.by_sha.items() if full.startswith(sha)), None)

    def _event(
        self, report: Report, kind: Happening, sha: str, at: datetime, *, title: str = "", tag: str = ""
    ) -> Event:
        key = f"{kind}:{self.tree.name}:{sha}"
        value = EventValue(key=key, kind=kind, at=at, commit=sha, title=title, tag=tag, tree=self.tree.name)
        return history.event_row(report, value, self.now, title)

    def _store_landings(self) -> int:
        titles = {commit.sha: commit.title for commit in self.commits}
        stored = 0
        for sha, tag in self.landed.items():
            commit, _ = Commit.objects.get_or_create(sha=sha, defaults={"title": titles.get(sha, "")})
            _, new = Landing.objects.get_or_create(
                commit=commit, tree=self.tree, defaults={"tag": tag.name, "at": tag.at}
            )
            stored += new
        return stored
