"""What git trees say of a commit, and whether a patch applies to one.

A culprit is looked up in all trees: its author, parents and patch-id, and whether it changes any code rather than
only comments, white space or documentation. Any number of commits takes a fixed number of git calls per tree, and a
tree that can't be read is skipped. Uses git, but not the database.

A patch is applied to an index of its own, so that no file of a tree is ever written. That it does not apply is only
said where a tree has one of the commits, and git refused the patch itself.
"""

import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bot.git import repository as git
from bot.git.repository import Unreadable, parse_timestamp, resolve, revisions
from bot.mail.patches import find_trailers

# --- Commits ---

_FIELDS = ("%H", "%P", "%an", "%ae", "%at", "%B")
_QUIET = ("--no-walk=unsorted", "--stdin", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
_MAX_FILES = 50  # a commit that changes more files is not checked and counts as a code change
_MAX_BLOB = 4 << 20


@dataclass(frozen=True, slots=True)
class CommitInspection:
    """A commit as a tree has it. `no_op`: it changes only comments, white space or documentation."""

    sha: str
    parents: tuple[str, ...]
    title: str
    author_name: str
    author_email: str
    authored_at: datetime
    trailers: tuple[tuple[str, str], ...]
    patch_id: str = ""
    no_op: bool = False


def inspect(repositories: Iterable[Path], shas: Collection[str]) -> dict[str, CommitInspection]:
    """Return commits by sha, each from the first tree that holds it. Trees that can't be read are skipped."""
    by_sha: dict[str, CommitInspection] = {}
    for repository in repositories:
        missing = [sha for sha in shas if sha not in by_sha]
        if not missing:
            break
        with suppress(Unreadable, OSError):
            by_sha |= _inspect(repository, missing)
    return by_sha


def _inspect(repository: Path, shas: Collection[str]) -> dict[str, CommitInspection]:
    """Inspect any number of commits with a fixed number of git calls."""
    resolved = list(resolve(repository, shas).values())
    if not resolved:
        return {}
    sha_lines = revisions(resolved)
    output = git.run(repository, "log", *_QUIET, "-z", f"--format={'%n'.join(_FIELDS)}", stdin=sha_lines)
    changes = git.run(
        repository, "diff-tree", "--stdin", "-z", "-r", "--root", "--no-renames", "--no-abbrev", stdin=sha_lines
    )
    ids = _patch_ids(repository, sha_lines)
    changed = _entries(changes.decode("utf-8", "replace"))
    parsed = [(commit, changed.get(commit.sha, ())) for commit in map(_parsed, output.split(b"\0")[:-1])]
    small = {entry for _, entries in parsed if len(entries) <= _MAX_FILES for entry in entries}
    blobs = _blobs(repository, {sha for entry in small for sha in (entry.old, entry.new)})
    return {
        commit.sha: replace(commit, patch_id=ids.get(commit.sha, ""), no_op=_changes_nothing(entries, blobs))
        for commit, entries in parsed
    }


def patch_ids(repositories: Iterable[Path], shas: Collection[str]) -> dict[str, str]:
    """Return the patch-ids of these commits, each from the first tree that holds it: "" for a merge, an empty commit
    or one that git can't compare. Commits that no tree holds are left out.
    """
    by_sha: dict[str, str] = {}
    for repository in repositories:
        with suppress(Unreadable, OSError):
            resolved = resolve(repository, [sha for sha in shas if sha not in by_sha])
            by_sha |= dict.fromkeys(resolved, "")
            ids = _patch_ids(repository, revisions(resolved.values())) if resolved else {}
            by_sha |= {sha: ids[full_sha] for sha, full_sha in resolved.items() if full_sha in ids}
    return by_sha


def _patch_ids(repository: Path, sha_lines: bytes) -> dict[str, str]:
    """Return patch-ids by sha. Patches are piped from git to git: one of a gigabyte takes no memory here."""
    log = ("log", *_QUIET, "-p", "--format=commit %H")
    output = git.pipe(repository, log, ("patch-id", "--stable"), stdin=sha_lines).decode("ascii", "replace")
    return {line.split()[1]: line.split()[0] for line in output.splitlines()}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One changed file, with its blobs before and after; zeros for none."""

    path: str
    old: str
    new: str


def _parsed(record: bytes) -> CommitInspection:
    """Parse a log record. The message is last, since it may hold anything but a NUL."""
    sha, parents, name, email, at, message = record.decode("utf-8", "replace").split("\n", 5)
    title, _, body = message.partition("\n")
    return CommitInspection(
        sha=sha,
        parents=tuple(parents.split()),
        title=title.strip(),
        author_name=name,
        author_email=email,
        authored_at=parse_timestamp(at),
        trailers=tuple((trailer.key, trailer.value) for trailer in find_trailers(body.split("\n"))),
    )


def _entries(output: str) -> dict[str, tuple[_Entry, ...]]:
    """Return the changed files by commit, from a list of each sha, then a `:` line and a path per file."""
    by_sha: dict[str, tuple[_Entry, ...]] = {}
    fields = iter(output.split("\0"))
    sha = ""
    for field in fields:
        if field.startswith(":"):
            by_sha[sha] = (*by_sha.get(sha, ()), _Entry(next(fields, ""), *field.split()[2:4]))
        else:
            sha = field
    return by_sha


def _blobs(repository: Path, shas: Collection[str]) -> dict[str, bytes]:
    """Return the contents of blobs, except those that are missing or too large."""
    existing = revisions(sorted(sha for sha in shas if set(sha) != {"0"}))
    sizes = git.run(repository, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=existing)
    lines = (line.split(" ") for line in sizes.decode("ascii", "replace").splitlines())
    fitting = [sha for sha, size in lines if size.isdigit() and int(size) <= _MAX_BLOB]
    out = git.run(repository, "cat-file", "--batch", stdin=revisions(fitting))
    contents: dict[str, bytes] = {}
    at = 0
    for sha in fitting:
        end = out.index(b"\n", at)
        size = int(out[at:end].split(b" ")[2])
        contents[sha] = out[end + 1 : end + 1 + size]
        at = end + 2 + size
    return contents


def _changes_nothing(entries: tuple[_Entry, ...], blobs: Mapping[str, bytes]) -> bool:
    """Whether every changed file is documentation, or the same code without comments and white space."""
    return bool(entries) and all(_DOCUMENTATION.match(entry.path) or _same_code(entry, blobs) for entry in entries)


_DOCUMENTATION = re.compile(
    r"(?!Documentation/devicetree/bindings)"
    r"(?:(?:Documentation|LICENSES)/|(?:.*/)?(?:README|MAINTAINERS|CREDITS|\.mailmap|COPYING)|.*\.(?:rst|txt|md)\Z)"
)


def _same_code(entry: _Entry, blobs: Mapping[str, bytes]) -> bool:
    old, new = blobs.get(entry.old), blobs.get(entry.new)
    if old is None or new is None or not entry.path.endswith((".c", ".h", ".S", ".dts", ".dtsi")):
        return False
    return _code(old) == _code(new)


# A comment, or a literal that may contain something like one.
_C = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?|\s+", re.DOTALL)


def _code(source: bytes) -> bytes:
    """Return C source without comments, with white space collapsed."""
    plain = _C.sub(lambda match: match[0] if match[0][:1] in b"\"'" else b" ", source)
    return re.sub(rb" +", b" ", plain).strip()


# --- Patches ---

_TIMEOUT = 120.0  # seconds per git call
HEAD = "HEAD"
MOST_PLACES = 8  # commits in trees that a patch is tried on
MAX_PATCH = 4 * 1024 * 1024  # characters


@dataclass(frozen=True, slots=True)
class ApplyCheck:
    """The first commit that the patch applies to ("" for none), and what git said about the first that it does not.

    `known`: whether a tree has any of the commits; otherwise nothing was checked. `missing`: those that none has.
    """

    base: str = ""
    error: str = ""
    known: bool = False
    missing: tuple[str, ...] = ()


def check(repositories: Iterable[Path], commits: Sequence[str], patch: str) -> ApplyCheck:
    """Return the first of some commits that a patch applies to, looked for in all trees; at last their heads.

    That it does not apply is only said where a tree has one of the commits, and git refused the patch itself.
    """
    if len(patch) > MAX_PATCH:
        return ApplyCheck(error=f"the patch has more than {MAX_PATCH:,} characters", known=True)
    places: list[tuple[Path, str, str]] = []  # where each commit is: tree, full sha, and the name that was asked for
    for repository in repositories:
        with suppress(Unreadable, OSError, ValueError):
            resolved = resolve(repository, [*commits, HEAD])
            places += [(repository, resolved[name], name) for name in (*commits, HEAD) if name in resolved]
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
    missing = tuple(commit for commit in commits if all(name != commit for _, _, name in named))
    return ApplyCheck(error=first, known=True, missing=missing) if named else ApplyCheck()


def _error_at(repository: Path, commit: str, patch: str) -> str:
    """Return why a patch does not apply to a commit; "" if it does. Raises Unreadable if git says nothing about it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**git.ENVIRONMENT, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        git.run(repository, "read-tree", commit, env=env, timeout=_TIMEOUT)
        text = patch.encode("utf-8", "replace")
        try:
            git.run(repository, "apply", "--check", "--cached", "-", stdin=text, env=env, timeout=_TIMEOUT)
        except Unreadable as error:
            said = str(error).partition("git apply: ")[2]
            if not said.startswith("error:"):
                raise
            return said
    return ""
