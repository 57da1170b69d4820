"""Whether a patch applies to a commit: looked up in an index of its own, so that no file of a tree is ever written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.refs import resolve

_TIMEOUT = 120.0  # seconds per git call
HEAD = "HEAD"
MOST_PLACES = 8  # commits in trees that a patch is tried on
MAX_PATCH = 4 * 1024 * 1024  # characters


@dataclass(frozen=True, slots=True)
class ApplyCheck:
    """The first commit that the patch applies to ("" for none), and what git said about the first that it does not.

    `known`: whether a tree has any of the commits; otherwise nothing was checked.
    """

    base: str = ""
    error: str = ""
    known: bool = False


def check(repositories: Iterable[Path], commits: Sequence[str], patch: str) -> ApplyCheck:
    """Return the first of some commits that a patch applies to, looked for in all trees; at last their heads.

    That it does not apply is only said where a tree has one of the commits, and git refused the patch itself.
    """
    if len(patch) > MAX_PATCH:
        return ApplyCheck(error=f"the patch has more than {MAX_PATCH:,} characters", known=True)
    places = list(_places(list(repositories), [*commits, HEAD]))
    named = [place for place in places if place[2] != HEAD]
    first = ""
    for repository, sha, _ in sorted(places, key=lambda place: place[2] == HEAD)[:MOST_PLACES]:
        try:
            error = _error_at(repository, sha, patch)
        except (Unreadable, OSError):
            return ApplyCheck()  # a broken or slow tree says nothing about a patch
        if not error:
            return ApplyCheck(sha, first, True)
        first = first or error
    return ApplyCheck(error=first, known=True) if named else ApplyCheck()


def _places(repositories: Sequence[Path], commits: Sequence[str]) -> Iterator[tuple[Path, str, str]]:
    """Yield where each commit is: tree, full sha, and the name that was asked for."""
    for repository in repositories:
        try:
            found = resolve(repository, commits)
        except (Unreadable, OSError, ValueError):
            continue
        yield from ((repository, found[each], each) for each in commits if each in found)


def _error_at(repository: Path, commit: str, patch: str) -> str:
    """Return why a patch does not apply to a commit; "" if it does. Raises Unreadable."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**git.ENVIRONMENT, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        git.run(repository, "read-tree", commit, env=env, timeout=_TIMEOUT)
        return _apply(repository, patch, env)


def _apply(repository: Path, patch: str, env: Mapping[str, str]) -> str:
    """Return git's error, or "" if the patch applies to the index. Raises Unreadable if git says nothing about it."""
    text = patch.encode("utf-8", "replace")
    try:
        git.run(repository, "apply", "--check", "--cached", "-", stdin=text, env=env, timeout=_TIMEOUT)
    except Unreadable as error:
        said = str(error).partition("git apply: ")[2]
        if not said.startswith("error:"):
            raise
        return said
    return ""
