"""What git knows better than the rows that results and mail left: authors, bases, releases, order of builds.

A report may be stored long before a tree holds its culprit. Once a walk finds it, git replaces what was guessed: who
wrote, signed and maintains the culprit (instead of whom the report mail was sent to, and by the MAINTAINERS file of
that very commit); the base of a finding, which is the last version before its parent as `git describe` names it
("v5.5-rc3"); the release cycles that a tree's tags show, with their candidates and dates; and where the builds of
curves stand in the mainline, whose first-parent history is searched for what was measured.

The functions that ask git come in pairs with those that store, because git runs outside of the transaction of a walk.
How much is looked up in one walk is limited, and the next walk goes on. What can't be read now is left out and asked
for again: "nobody maintains it" would be a wrong answer for ever.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db.models import Q

from bot.git import repository as git
from bot.git.history import git_order
from bot.git.inspection import CommitInspection, inspect
from bot.git.maintainers import Duty, responsible_in
from bot.git.repository import Refs, Tag, Unreadable, read_refs, resolve, revisions
from bot.mail.addresses import MOST, Address, signers
from bot.mail.patches import bare_title
from bot.replies.which_report import person_keys
from tracker.domain import versions
from tracker.domain.events import TreeRole
from tracker.models import Commit, Finding, Release, ReleaseCandidate, Report, Tree
from tracker.services import curves
from tracker.services.report_summary import ReleaseCalendar, refresh, refresh_since

# --- Authors and maintainers ---

log = logging.getLogger(__name__)
_KNOWN_TO_GIT = (
    "author_name", "author_email", "author_from_report", "title", "authored_at",
    "trailers", "signers", "maintainers", "patch_id",
)  # fmt: skip
_MAX_LOOKED_UP = 5000  # culprits, and parents, looked up in a tree at once, newest first
_MAX_INSPECTED = 200  # of those found; the next walk goes on
_MAX_MAINTAINERS = 50  # culprits whose files are looked up in MAINTAINERS in a walk, each in some 50 ms


@dataclass(frozen=True, slots=True)
class FoundCulprits:
    """The culprits that a tree holds, and whom its MAINTAINERS lists for their files, by the sha that we know."""

    commits: Mapping[str, CommitInspection]
    maintainers: Mapping[str, Sequence[Address]]


def find(repository: Path) -> FoundCulprits:
    """Return the culprits of this tree whose author or maintainers git has not told yet."""
    # Without a patch-id git has not been asked yet; or it is a merge, and is asked again.
    untold = Q(author_email="") | Q(author_from_report=True) | Q(patch_id="")
    lacking = Commit.objects.filter(untold | Q(maintainers__isnull=True), report__isnull=False).order_by("-pk")
    rows = dict(lacking.values_list("sha", "maintainers")[:_MAX_LOOKED_UP])
    held = resolve(repository, list(rows)) if rows else {}
    # Those of whom git has told nothing come first: merges, which are asked for in every walk, must not keep them out.
    first = sorted((sha for sha in rows if sha in held), key=lambda sha: rows[sha] is not None)
    full_shas = {sha: held[sha] for sha in first[:_MAX_INSPECTED]}
    inspections = inspect([repository], full_shas.values()) if full_shas else {}
    commits = {sha: inspections[full_sha] for sha, full_sha in full_shas.items() if full_sha in inspections}
    # The maintainers and reviewers of a commit's files, by the MAINTAINERS of that commit
    maintainers: dict[str, Sequence[Address]] = {}
    for sha in [sha for sha in full_shas if rows[sha] is None][:_MAX_MAINTAINERS]:
        try:
            listed = responsible_in(repository, full_shas[sha])
        except (Unreadable, OSError, ValueError) as error:
            log.warning("who maintains %s can't be read: %s", sha[:10], error)
            continue  # left out, and so asked for again: "nobody" would be a wrong answer for ever
        maintainers[sha] = [person.address for person in listed if person.duty is not Duty.LIST]
    return FoundCulprits(commits, maintainers)


def store(culprits: FoundCulprits) -> None:
    """Store whose these culprits are, and what else git knows of them and we don't."""
    commits = culprits.commits
    reports = Report.objects.filter(culprit__sha__in=commits).select_related("culprit").order_by("pk")
    for report in reports.select_for_update(of=("self", "culprit")):
        commit, seen = report.culprit, commits[report.culprit.sha]
        commit.author_name, commit.author_email = seen.author_name[:300], seen.author_email.lower()[:300]
        commit.author_from_report = False
        commit.title = commit.title or bare_title(seen.title)[:1000]
        commit.authored_at = commit.authored_at or seen.authored_at
        commit.trailers = commit.trailers or [list(pair) for pair in seen.trailers]
        commit.signers = person_keys(signers(seen.trailers))
        if (listed := culprits.maintainers.get(commit.sha)) is not None:
            commit.maintainers = person_keys(listed[:MOST])
        commit.patch_id = commit.patch_id or seen.patch_id
        commit.save(update_fields=_KNOWN_TO_GIT)
        author = Address(commit.author_name, commit.author_email)
        report.authors = sorted({*report.authors, *person_keys([author])})
        report.save(update_fields=["authors"])
    refresh(Report.objects.filter(culprit__sha__in=commits).values_list("pk", flat=True))


# --- Bases ---

_MAX_EXCLUDES = 100_000  # letters, most of which are a byte
_MAX_DESCRIBED = 50  # of those found, at up to a tenth of a second each; the next walk goes on


def find_bases(repository: Path, refs: Refs) -> dict[str, str]:
    """Return the bases of parents that have none yet and that this tree holds."""
    if not refs.versions:
        return {}
    lacking = Commit.objects.filter(base="", pk__in=Finding.objects.exclude(parent=None).values("parent"))
    parents = list(lacking.order_by("-pk").values_list("sha", flat=True)[:_MAX_LOOKED_UP])
    resolved = resolve(repository, parents) if parents else {}
    return describe(repository, dict(list(resolved.items())[:_MAX_DESCRIBED]), refs.odd) if resolved else {}


def store_bases(bases: Mapping[str, str]) -> None:
    """Store bases. They replace what a lab gave, since git knows better."""
    changed: set[int] = set()
    for sha, base in bases.items():
        Commit.objects.filter(sha=sha).update(base=base)
        others = Finding.objects.filter(parent__sha=sha).exclude(base=base)
        changed.update(others.filter(headline=True).values_list("report", flat=True))
        others.update(base=base)
    refresh(changed)


def describe(repository: Path, shas: Mapping[str, str], odd: Collection[str]) -> dict[str, str]:
    """Return the nearest version before each commit, by its name in `shas`, whose values are full shas. Commits
    without one are left out.
    """
    excludes = "".join(f",exclude={name}" for name in odd if not set(name) & set(",()%"))
    # One argument may have 128 KiB. A tree with more odd names gets fewer bases: what is not a version is left out.
    excludes = excludes[:_MAX_EXCLUDES].rpartition(",")[0] if len(excludes) > _MAX_EXCLUDES else excludes
    form = f"%H %(describe:match=v[0-9]*{excludes},abbrev=0)"
    try:
        asked = revisions(shas.values())
        out = git.run(repository, "log", "--no-walk=unsorted", "--stdin", f"--format={form}", stdin=asked)
    except Unreadable:
        return {}
    described = dict(line.partition(" ")[::2] for line in out.decode("utf-8", "replace").splitlines())
    return {sha: described[full_sha] for sha, full_sha in shas.items() if versions.parse(described.get(full_sha, ""))}


# --- Releases ---


def store_releases(tags: Sequence[Tag]) -> None:
    """Store every release cycle in the tags, with its date once released, and its candidates.

    Refreshes the summaries of reports made since the release before the first new one.
    """
    before = ReleaseCalendar.load()
    releases = {release.version: release for release in Release.objects.all()}
    candidates = set(ReleaseCandidate.objects.values_list("version", flat=True))
    rows: list[ReleaseCandidate] = []
    for tag in tags:
        version = versions.parse(tag.name)
        cycle = versions.parse(version.cycle) if version else None
        if version is None or cycle is None or version.is_stable:
            continue
        release = releases.get(version.cycle)
        if release is None:
            release, _ = Release.objects.get_or_create(version=version.cycle, defaults={"number": cycle.number})
            releases[version.cycle] = release
        if version.is_release and release.released_at is None:
            release.released_at = tag.at
            release.save(update_fields=["released_at"])
        if version.is_candidate and tag.name not in candidates:
            rows.append(ReleaseCandidate(version=tag.name, release=release, number=version.candidate, tagged_at=tag.at))
    ReleaseCandidate.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    after = ReleaseCalendar.load()
    if after != before:
        same = [old for old, new in zip(before.ends, after.ends, strict=False) if old == new]
        refresh_since(same[-1] if same and same == list(after.ends[: len(same)]) else None)


# --- Order of builds ---


def order_builds(tree: Tree, now: datetime) -> int:
    """Put builds that the mainline holds in its order. Returns how many curves changed. Raise Unreadable."""
    if tree.role != TreeRole.MAINLINE:
        return 0
    names = curves.sought(Tree.objects.values_list("walked_at", flat=True).get(pk=tree.pk), now)
    places: dict[str, datetime] = {}
    if names:
        repository, refs = Path(tree.path), read_refs(Path(tree.path))
        if heads := refs.followed(tree.branches, every=False).values():
            tagged = {tag.name: tag.commit for tag in refs.versions}
            commits = resolve(repository, [name for name in names if name not in tagged])
            commits |= {name: tagged[name] for name in names if name in tagged}
            order = git_order(repository, next(iter(heads)), sorted(set(commits.values())))
            places = {name: order[sha] for name, sha in commits.items() if sha in order}
    return curves.store_places(places, [name for name in names if name not in places], now)
