"""What a tree says of our reports, into the database: landings of culprits, fixes, reverts, and releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from bot.errors import Unreadable
from bot.git import is_repository
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


def track(tree: Tree, base_url: str, now: datetime) -> TrackTally:
    """Walk one tree. What it finds and where it stands are stored in one transaction."""
    repository = Path(tree.path)
    if not is_repository(repository):
        raise Unreadable(f"{tree.name}: {tree.path}: not a git repository; set PERFWORK_TREES to a clone of it")
    cursor = f"{walk.refs_digest(repository)} {_what_we_track()}"
    if cursor == tree.cursor:
        return TrackTally(unchanged=True)
    tags = walk.version_tags(repository)
    with transaction.atomic():
        if tree.role == TreeRole.MAINLINE:
            _store_releases(tags)
        landings, events = _Walk(tree, repository, tags, base_url, now).store()
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
    """One pass over a tree: loads what is tracked once, then turns commits into events."""

    def __init__(self, tree: Tree, repository: Path, tags: tuple[walk.Tag, ...], base_url: str, now: datetime) -> None:
        self.tree, self.repository, self.tags, self.now = tree, repository, tags, now
        self.base_url = base_url
        self.reports = list(Report.objects.select_related("culprit"))
        self.by_page = {report.tag: report for report in self.reports}
        self.by_title = {report.fix_title: report for report in self.reports if report.fix_title}
        by_pk = {report.pk: report for report in self.reports}
        self.by_message = {
            message_id: by_pk[pk]
            for rows in (OutgoingMail.objects, Message.objects)
            for message_id, pk in rows.values_list("message_id", "report_id")
        }

    def store(self) -> tuple[int, int]:
        """Everything new into the database: how many landings, how many events."""
        culprits = {report.culprit.sha: report for report in self.reports}
        full = walk.resolve(self.repository, culprits)
        found = list(self._telling_commits())
        landed = walk.first_tags(self.repository, {*full.values(), *(commit.sha for commit in found)}, self.tags)
        rows = [
            *self._culprits_landed(culprits, full, landed),
            *(row for commit in found for row in self._told_by(commit, full, landed.get(commit.sha))),
        ]
        return self._store_landings(landed, full, found), history.record(rows)

    def _telling_commits(self) -> Iterator[walk.GitCommit]:
        dates = [report.reported_at for report in self.reports if report.reported_at]
        since = min(dates, default=self.now) - _BEFORE_REPORT
        return walk.telling_commits(self.repository, since, self.by_title, self.base_url)

    def _culprits_landed(
        self, culprits: dict[str, Report], full: dict[str, str], landed: dict[str, walk.Tag]
    ) -> Iterator[Event]:
        for known, sha in full.items():
            if known != sha:  # until now only the beginning of the sha was known
                Commit.objects.filter(sha=known).update(sha=sha)
            if self.tree.role == TreeRole.MAINLINE and (tag := landed.get(sha)):
                yield self._event(culprits[known], Happening.LANDED, sha, tag.at, tag=tag.name)

    def _told_by(self, commit: walk.GitCommit, full: dict[str, str], tag: walk.Tag | None) -> Iterator[Event]:
        """What a commit does to reports: it reverts a culprit, or it is a fix."""
        at = tag.at if tag else commit.at
        name = tag.name if tag else ""
        reverted = self._by_sha(commit.reverts)
        if reverted:
            yield self._event(reverted, Happening.DROPPED, commit.sha, at, title=commit.title, tag=name)
        for report in self._fixed_by(commit):
            if report == reverted or full.get(report.culprit.sha) == commit.sha:
                continue
            if tag and self.tree.role == TreeRole.MAINLINE:
                yield self._event(report, Happening.FIX_LANDED, commit.sha, at, title=commit.title, tag=name)
            else:
                yield self._event(report, Happening.FIX_QUEUED, commit.sha, commit.at, title=commit.title)

    def _fixed_by(self, commit: walk.GitCommit) -> list[Report]:
        """The reports that a commit fixes: named by Closes: or Link:, or expected by its title."""
        found = [self.by_message.get(message_id) for message_id in commit.closes]
        found += [self.by_page.get(page) or self._by_sha(page) for page in commit.pages]
        found.append(self.by_title.get(commit.title))
        return list(dict.fromkeys(report for report in found if report))

    def _by_sha(self, sha: str) -> Report | None:
        if not sha:
            return None
        return next((report for report in self.reports if report.culprit.sha.startswith(sha[:40])), None)

    def _event(
        self, report: Report, kind: Happening, sha: str, at: datetime, *, title: str = "", tag: str = ""
    ) -> Event:
        value = EventValue(
            key=f"{kind}:{self.tree.name}:{sha}",
            kind=kind,
            at=at,
            commit=sha,
            title=title,
            tag=tag,
            tree=self.tree.name,
        )
        return history.event_row(report, value, self.now, title)

    def _store_landings(self, landed: dict[str, walk.Tag], full: dict[str, str], found: list[walk.GitCommit]) -> int:
        titles = {commit.sha: commit.title for commit in found}
        tracked = set(full.values())
        fixing = {commit.sha for commit in found if self._fixed_by(commit) or self._by_sha(commit.reverts)}
        stored = 0
        for sha, tag in landed.items():
            if sha not in tracked and sha not in fixing:
                continue
            commit, _ = Commit.objects.get_or_create(sha=sha, defaults={"title": titles.get(sha, "")})
            _, new = Landing.objects.get_or_create(
                commit=commit, tree=self.tree, defaults={"tag": tag.name, "at": tag.at}
            )
            stored += new
        return stored
