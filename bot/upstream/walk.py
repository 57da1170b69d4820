"""A git tree as values: its version tags, the first tag of a commit, and the commits that name a mail.

Pure but for git: nothing here knows the database.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot import git
from bot.identity import Identity
from bot.replies.addresses import parse_addresses
from bot.replies.links import find_links
from bot.replies.trailers import find_trailers
from tracker import versions

_FORMAT = "--format=%H%x01%ct%x01%B"


@dataclass(frozen=True, slots=True)
class Tag:
    """A version tag and when it was made."""

    name: str
    commit: str
    at: datetime


@dataclass(frozen=True, slots=True)
class GitCommit:
    """A commit as the log tells it, with what its trailers name."""

    sha: str
    at: datetime
    title: str
    closes: tuple[str, ...]  # the Message-IDs that its Closes: and Link: lead to
    pages: tuple[str, ...]  # the shas or tags of our own report pages there, and the tags of Reported-by:
    reverts: str  # the sha in "This reverts commit …"


def version_tags(repository: Path) -> tuple[Tag, ...]:
    """The tags that name kernel versions, in the order of release. Tags of trees and other tags are left out."""
    fields = (
        "%(refname:strip=2)%01%(objectname)%01%(*objectname)%01%(objecttype)%01%(*objecttype)%01%(creatordate:unix)"
    )
    out = git.run(repository, "for-each-ref", f"--format={fields}", "refs/tags/v[0-9]*").decode("utf-8", "replace")
    tags: list[tuple[versions.Version, Tag]] = []
    for line in out.splitlines():
        name, own, peeled, own_type, peeled_type, at = line.split("\x01")
        commit, kind = (peeled, peeled_type) if peeled else (own, own_type)
        if kind == "tag":  # a tag of a tag: git peels one of them
            commit, kind = resolve(repository, [own]).get(own, ""), "commit"
        version = versions.parse(name)
        if version and commit and kind == "commit":
            tags.append((version, Tag(name, commit, _moment(at))))
    return tuple(tag for _, tag in sorted(tags, key=lambda pair: pair[0]))


def refs_digest(repository: Path) -> str:
    """One line that changes whenever a branch or a tag does."""
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


def telling_commits(
    repository: Path, since: datetime, titles: Collection[str], identity: Identity
) -> Iterator[GitCommit]:
    """The commits of all branches and tags since then that close or revert something, or bear one of `titles`."""
    everywhere = ("--branches", "--tags", "--remotes")
    out = git.run(repository, "log", "-z", _FORMAT, f"--since={int(since.timestamp())}", *everywhere)
    for record in out.split(b"\0"):
        fields = record.decode("utf-8", "replace").lstrip("\n").split("\x01", 2)
        if len(fields) != 3:
            continue
        sha, at, body = fields
        title = body.partition("\n")[0].strip()
        if title in titles or any(word in body for word in _TELLING):
            yield _commit(sha, _moment(at), title, body, identity)


_TELLING = ("Closes:", "Link:", "Reported-by:", "This reverts commit")
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,40})")


def _commit(sha: str, at: datetime, title: str, body: str, identity: Identity) -> GitCommit:
    trailers = find_trailers(body.split("\n"))
    named = "\n".join(each.value for each in trailers if each.key in ("Closes", "Link"))
    links = find_links(named, identity.base_url)
    people = "\n".join(each.value for each in trailers if each.key.startswith("Reported-"))
    tags = (identity.tag_in(address.email) for address in parse_addresses(people.replace("\n", ",")))
    reverted = _REVERTS.search(body)
    return GitCommit(
        sha=sha,
        at=at,
        title=title,
        closes=tuple(link.message_id for link in links if link.message_id),
        pages=(*(link.page for link in links if link.page), *(tag for tag in tags if tag)),
        reverts=reverted[1] if reverted else "",
    )


def _moment(seconds: str) -> datetime:
    """A time of git; one that no calendar knows is the epoch."""
    try:
        return datetime.fromtimestamp(int(seconds or 0), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
