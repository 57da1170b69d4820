"""A git tree as values: its version tags, the first tag of a commit, and the commits that name a mail.

Pure but for git: nothing here knows the database.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot.archive import git
from bot.archive.errors import ArchiveError
from bot.replies.links import find_links
from bot.replies.trailers import find_trailers
from tracker import versions

_FORMAT = "--format=%H%x01%ct%x01%at%x01%an%x01%ae%x01%B"


@dataclass(frozen=True, slots=True)
class Tag:
    """A version tag and when it was made."""

    name: str
    commit: str
    at: datetime


@dataclass(frozen=True, slots=True)
class GitCommit:
    """A commit as the log tells it. Ids of mails are those of its Closes: and Link: trailers."""

    sha: str
    at: datetime
    author_name: str
    author_email: str
    title: str
    closes: tuple[str, ...]  # Message-IDs of Closes:
    links: tuple[str, ...]  # Message-IDs of Link:
    pages: tuple[str, ...]  # shas or tags of our own report pages, in either
    fixes: tuple[str, ...]
    reverts: str  # the sha in "This reverts commit …"


def version_tags(repository: Path) -> tuple[Tag, ...]:
    """The tags that name kernel versions, in the order of release. Tags of trees and other tags are left out."""
    fields = "%(refname:short)%01%(objectname)%01%(*objectname)%01%(objecttype)%01%(*objecttype)%01%(creatordate:unix)"
    out = git.run(repository, "for-each-ref", f"--format={fields}", "refs/tags/v[0-9]*").decode("utf-8", "replace")
    tags: list[Tag] = []
    for line in out.splitlines():
        name, own, peeled, own_type, peeled_type, at = line.split("\x01")
        commit, kind = (peeled, peeled_type) if peeled else (own, own_type)
        if versions.parse(name) and kind == "commit":
            tags.append(Tag(name, commit, _moment(at)))
    return tuple(sorted(tags, key=lambda tag: versions.parse(tag.name) or tag.name))  # type: ignore[arg-type,return-value]


def refs_digest(repository: Path) -> str:
    """One line that changes whenever a branch or a tag does."""
    import hashlib

    out = git.run(repository, "for-each-ref", "--format=%(refname) %(objectname)")
    return hashlib.sha256(out).hexdigest()[:16]


def resolve(repository: Path, shas: Collection[str]) -> dict[str, str]:
    """The full sha of each that the repository holds as a commit."""
    asked = sorted(shas)
    out = git.run(
        repository,
        "cat-file",
        "--batch-check=%(objectname) %(objecttype)",
        stdin="".join(f"{sha}^{{commit}}\n" for sha in asked).encode("ascii"),
    )
    found: dict[str, str] = {}
    for sha, line in zip(asked, out.decode("ascii", "replace").splitlines(), strict=True):
        name, _, kind = line.partition(" ")
        if kind == "commit":
            found[sha] = name
    return found


def first_tags(repository: Path, shas: Collection[str], tags: Sequence[Tag]) -> dict[str, Tag]:
    """For each full sha the earliest version whose history holds it; those in no version are left out.

    The versions are asked in the order of release, each only for what the ones before it lacked.
    """
    wanted = set(shas)
    found: dict[str, Tag] = {}
    older: list[str] = []
    for tag in tags:
        if not wanted:
            break
        new = git.run(repository, "rev-list", tag.commit, *older)
        held = wanted.intersection(new.decode("ascii").split())
        found.update(dict.fromkeys(held, tag))
        wanted -= held
        older.append(f"^{tag.commit}")
    return found


def commits_that_name(repository: Path, since: datetime) -> Iterator[GitCommit]:
    """The commits of all branches and tags since then that carry a Closes:, Link:, Fixes: or a revert."""
    out = git.run(
        repository, "log", "-z", _FORMAT, f"--since={int(since.timestamp())}", "--branches", "--tags", "--remotes"
    )
    for record in out.split(b"\0"):
        fields = record.decode("utf-8", "replace").lstrip("\n").split("\x01", 5)
        if len(fields) == 6 and (commit := _commit(fields)):
            yield commit


_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,40})")


def _commit(fields: Sequence[str]) -> GitCommit | None:
    sha, committed, _, name, email, body = fields
    if not any(word in body for word in ("Closes:", "Link:", "Fixes:", "This reverts commit")):
        return None
    lines = body.split("\n")
    trailers = find_trailers(lines)
    by_key = {key: "\n".join(each.value for each in trailers if each.key == key) for key in ("Closes", "Link")}
    from bot.replies.trailers import fixed_commits

    reverted = _REVERTS.search(body)
    return GitCommit(
        sha=sha,
        at=_moment(committed),
        author_name=name,
        author_email=email,
        title=lines[0].strip(),
        closes=_message_ids(by_key["Closes"]),
        links=_message_ids(by_key["Link"]),
        pages=(),
        fixes=fixed_commits(trailers),
        reverts=reverted[1] if reverted else "",
    )


def _message_ids(text: str) -> tuple[str, ...]:
    return tuple(link.message_id for link in find_links(text) if link.message_id)


def branches_with(repository: Path, sha: str) -> bool:
    """Whether any branch holds the commit."""
    try:
        return bool(git.run(repository, "for-each-ref", "--count=1", f"--contains={sha}", "refs/heads", "refs/remotes"))
    except ArchiveError:
        return False


def _moment(seconds: str) -> datetime:
    """A time of git; one that no calendar knows is the epoch."""
    try:
        return datetime.fromtimestamp(int(seconds or 0), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
