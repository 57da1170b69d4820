"""Whether a patch applies to a commit: looked up in an index of its own, so that no file of a tree is ever written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.refs import resolve

_TIMEOUT = 120.0  # seconds per git call
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
    """Return to which of some commits a patch applies, from the first tree that has one of them."""
    for repository in repositories:
        try:
            found = resolve(repository, list(commits))
            if known := [found[each] for each in commits if each in found]:
                return _check(repository, list(dict.fromkeys(known)), patch)
        except (Unreadable, OSError, ValueError):
            continue  # a broken tree says nothing about a patch
    return ApplyCheck()


def _check(repository: Path, commits: Sequence[str], patch: str) -> ApplyCheck:
    if len(patch) > MAX_PATCH:
        return ApplyCheck(error=f"the patch has more than {MAX_PATCH:,} characters", known=True)
    first = ""
    with tempfile.TemporaryDirectory() as folder:
        env = {**git.ENVIRONMENT, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        for commit in commits:
            git.run(repository, "read-tree", commit, env=env, timeout=_TIMEOUT)
            error = _apply(repository, patch, env)
            if not error:
                return ApplyCheck(commit, first, True)
            first = first or error
    return ApplyCheck(error=first, known=True)


def _apply(repository: Path, patch: str, env: dict[str, str]) -> str:
    """Return git's error, or "" if the patch applies to the index."""
    try:
        git.run(
            repository,
            "apply",
            "--check",
            "--cached",
            "-",
            stdin=patch.encode("utf-8", "replace"),
            env=env,
            timeout=_TIMEOUT,
        )
    except Unreadable as error:
        return str(error).partition("git apply: ")[2] or str(error)
    return ""
