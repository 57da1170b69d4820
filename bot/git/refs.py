"""The refs of a tree: its followed branches, and its tags in order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.commits import Tag, parse_timestamp
from tracker.domain import versions

_FIELDS = (
    *("%(refname)", "%(objectname)", "%(objecttype)", "%(*objectname)", "%(*objecttype)"),
    *("%(creatordate:unix)", "%(HEAD)", "%(symref)"),
)
_NEXT = re.compile(r"next-(\d{8})\Z")  # the day tags of linux-next
_LIKE_A_VERSION = re.compile(r"v\d")
_MAIN = ("master", "main")


@dataclass(frozen=True, slots=True)
class Refs:
    """The branches by name, the one that HEAD or the remote's HEAD points to ("" for none), and the tags in order."""

    branches: Mapping[str, str]
    main: str
    versions: tuple[Tag, ...]
    days: tuple[Tag, ...]
    odd: tuple[str, ...] = ()  # tags that look like versions but aren't

    def followed(self, pattern: str, *, every: bool) -> dict[str, str]:
        """Return the branches that match a pattern like `linux-6.*`; without one, all of them or only the main one."""
        if pattern:
            return {name: sha for name, sha in self.branches.items() if fnmatchcase(_short(name), pattern)}
        if every:
            return dict(self.branches)
        return {self.main: self.branches[self.main]} if self.main else {}


def _short(ref: str) -> str:
    """Return the name of a branch without its ref prefix: for-next of refs/remotes/origin/for-next."""
    kind, _, rest = ref.removeprefix("refs/").partition("/")
    return rest.partition("/")[2] if kind == "remotes" else rest


def read_refs(repository: Path) -> Refs:
    """Read all refs with one git call. In a clone with a remote only the remote's branches count, since local work is
    not published.

    Raise Unreadable if the repository is shallow or broken.
    """
    if (repository / "shallow").exists() or (repository / ".git" / "shallow").exists():
        raise Unreadable(f"{repository}: a shallow clone lacks the history: run `git fetch --unshallow` in it")
    out = git.run(
        repository, "for-each-ref", f"--format={'%01'.join(_FIELDS)}", "refs/heads", "refs/remotes", "refs/tags"
    )
    local: dict[str, str] = {}
    remote: dict[str, str] = {}
    marked = {"local": "", "remote": ""}
    tags: list[Tag] = []
    odd: list[str] = []
    for line in out.decode("utf-8", "replace").splitlines():
        name, own, kind, peeled, peeled_kind, at, head, symref = line.split("\x01")
        if name.startswith("refs/tags/"):
            name = name.removeprefix("refs/tags/")
            tag = _tag(repository, name, (own, kind), (peeled, peeled_kind), at)
            tags += [tag] if tag else []
            odd += [name] if not tag and _LIKE_A_VERSION.match(name) else []
        elif symref:
            marked["remote"] = symref if name == "refs/remotes/origin/HEAD" else marked["remote"]
        elif name.startswith("refs/heads/"):
            local[name] = own
            marked["local"] = name if head == "*" else marked["local"]
        else:
            remote[name] = own
    branches, main = (remote, marked["remote"]) if remote else (local, marked["local"])
    return Refs(
        branches, main if main in branches else _default_branch(branches), _versions(tags), _days(tags), tuple(odd)
    )


def _tag(repository: Path, name: str, own: tuple[str, str], peeled: tuple[str, str], at: str) -> Tag | None:
    """Return a tag that points to a commit and names a version or a day; None for any other."""
    if not (versions.parse(name) or _NEXT.match(name)):
        return None
    commit, kind = peeled if peeled[0] else own
    if kind == "tag":  # a tag of a tag: git peels only one
        commit, kind = resolve(repository, [own[0]]).get(own[0], ""), "commit"
    return Tag(name, commit, parse_timestamp(at)) if commit and kind == "commit" else None


def _versions(tags: Collection[Tag]) -> tuple[Tag, ...]:
    known = [(version, tag) for tag in tags if (version := versions.parse(tag.name))]
    return tuple(tag for _, tag in sorted(known, key=lambda pair: pair[0]))


def _days(tags: Collection[Tag]) -> tuple[Tag, ...]:
    return tuple(sorted((tag for tag in tags if _NEXT.match(tag.name)), key=lambda tag: tag.name))


def _default_branch(branches: Collection[str]) -> str:
    """Return the main branch of a clone whose HEAD points nowhere."""
    ends = [name for usual in _MAIN for name in branches if name.rpartition("/")[2] == usual]
    return (ends or sorted(branches) or [""])[0]


def resolve(repository: Path, shas: Collection[str]) -> dict[str, str]:
    """Return the full sha for each sha or abbreviation that the repository holds as a commit."""
    requested = sorted(shas)
    out = git.run(
        repository,
        "cat-file",
        "--batch-check=%(objectname) %(objecttype)",
        stdin="".join(f"{sha}^{{commit}}\n" for sha in requested).encode("ascii"),
    )
    found: dict[str, str] = {}
    for sha, line in zip(requested, out.decode("ascii", "replace").splitlines(), strict=True):
        name, _, kind = line.partition(" ")
        if kind == "commit":
            found[sha] = name
    return found
