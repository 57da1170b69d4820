"""What a commit changes and who maintains it: its files, its lines, and the MAINTAINERS file of its own tree.

Uses git, but not the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.maintainers import MAX_BYTES, MAX_FILES, MAX_TEXT, Responsible, read_maintainers
from bot.git.refs import resolve
from bot.mail.people.mailmap import read_mailmap

_MAX_FILES_FOR_KEYWORDS = 50  # files; the lines of a larger change are not matched against keywords
_TIMEOUT = 60.0  # seconds per git call
_LINE = re.compile(rb"^[+-](?![+-]{2} )(.*)$", re.M)


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """The files of a commit, and who is listed for them in MAINTAINERS."""

    files: tuple[str, ...] = ()
    responsible: tuple[Responsible, ...] = ()


def touched(repositories: Iterable[Path], sha: str) -> TouchedFiles:
    """Return the files from the first tree that holds the commit; nothing if none does or none can be read."""
    for repository in repositories:
        try:
            if full_sha := resolve(repository, [sha]).get(sha):
                return touched_in(repository, full_sha)
        except (Unreadable, OSError, ValueError):
            continue
    return TouchedFiles()


def touched_in(repository: Path, sha: str) -> TouchedFiles:
    """Return the files of a commit of this tree. Raises Unreadable, OSError and ValueError."""
    names = _git(repository, "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--no-renames", "--name-only", sha)
    files = tuple(names.decode("utf-8", "replace").split("\0")[:-1][:MAX_FILES])
    maintainers_text = _file(repository, sha, "MAINTAINERS")
    if not maintainers_text:
        return TouchedFiles(files)
    proper = read_mailmap(_file(repository, sha, ".mailmap")).proper
    changed = _changed(repository, sha) if len(files) <= _MAX_FILES_FOR_KEYWORDS else ""
    return TouchedFiles(files, read_maintainers(maintainers_text).of(files, changed, proper))


def _changed(repository: Path, sha: str) -> str:
    """Return the lines that it adds or removes, without their signs."""
    options = ("-p", "--root", "--no-commit-id", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv")
    patch = _git(repository, "diff-tree", *options, sha)
    return b"\n".join(found[1] for found in _LINE.finditer(patch[:MAX_TEXT])).decode("utf-8", "replace")


def _file(repository: Path, sha: str, path: str) -> str:
    """Return a file as the commit has it; "" if it is missing or far too large."""
    listed = _git(repository, "ls-tree", "-l", sha, "--", path).decode("utf-8", "replace").split()
    if len(listed) < 5 or listed[1] != "blob" or not listed[3].isdigit() or int(listed[3]) > MAX_BYTES:
        return ""
    return _git(repository, "cat-file", "blob", listed[2]).decode("utf-8", "replace")


def _git(repository: Path, *arguments: str) -> bytes:
    return git.run(repository, *arguments, timeout=_TIMEOUT)
