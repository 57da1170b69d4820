"""The history of a tree: its log as a stream, its commit graph, and its commits as points in time.

The *graph* of a walk knows the first tag that holds each commit, and the merge that brought it into a branch. A
million commits take some 250 MB: each sha is stored once, as the key of its number, and all else in arrays. The log
builds the graph and yields only the commits that pass a prefilter, so that memory does not grow with messages.

The *order* is that in which a branch got its commits. A commit of the first-parent line stands at its date. The
commits that a merge brought stand right before the merge, parents before children, however long ago they were
written: no build before the merge holds them. `Graph` and `places` are pure.
"""

from __future__ import annotations

import os
import tempfile
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from bot.git import repository as git
from bot.git.repository import LogCommit, Tag, Unreadable, clamped_seconds, parse_timestamp, revisions
from bot.processes import widen

# --- Graph ---

_NONE = -1


class Graph:
    """Commits and their parents, added in any order, then queried. Parents that are never added are the border."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}
        self._first = array("i")  # the first parent's number
        self._more: dict[int, tuple[int, ...]] = {}  # the other parents, of merges
        self._at = array("q")  # commit time in seconds; -1: not added
        self._tag = array("i")
        self._merge = array("i")
        self._names: list[bytes] = []

    def add(self, head: bytes) -> None:
        """Add a commit, given as its time in seconds, its sha and its parents' shas, separated by spaces."""
        committed, sha, *parents = head.split(b" ")
        number = self._of(sha)
        self._at[number] = int(committed) if len(committed) < 12 and committed.isdigit() else clamped_seconds(committed)
        if parents and parents[0]:
            numbers = [self._of(parent) for parent in parents]
            self._first[number] = numbers[0]
            if len(numbers) > 1:
                self._more[number] = tuple(numbers[1:])

    def _of(self, sha: bytes) -> int:
        number = self._number.get(sha)
        if number is None:
            number = self._number[sha] = len(self._number)
            self._first.append(_NONE)
            self._at.append(_NONE)
        return number

    def mark_tags(self, tags: Sequence[Tag]) -> None:
        """Mark every commit with the first tag whose history holds it. `tags` are in order of release."""
        self._tag = array("i", [_NONE]) * len(self._number)
        for index, tag in enumerate(tags):
            number = self._number.get(tag.commit.encode())
            if number is not None:
                self._spread(number, self._tag, index)

    def mark_merges(self, heads: Iterable[str]) -> None:
        """Mark every commit with the one that brought it into a branch: the oldest on the first-parent line whose
        history holds it.
        """
        self._merge = array("i", [_NONE]) * len(self._number)
        for head in heads:
            line = []  # the head and its first parents, as far as they were walked and are not marked yet
            number = self._number.get(head.encode(), _NONE)
            while number != _NONE and self._at[number] != _NONE and self._merge[number] == _NONE:
                line.append(number)
                number = self._first[number]
            for number in reversed(line):
                self._spread(number, self._merge, number)

    def _spread(self, start: int, marks: array[int], mark: int) -> None:
        """Mark a commit and all its ancestors that are not marked yet."""
        first, more, at = self._first, self._more, self._at
        if at[start] == _NONE or marks[start] != _NONE:
            return
        pending = [start]
        marks[start] = mark
        while pending:
            number = pending.pop()
            parents = (first[number], *more[number]) if number in more else (first[number],)
            for parent in parents:
                if parent != _NONE and at[parent] != _NONE and marks[parent] == _NONE:
                    marks[parent] = mark
                    pending.append(parent)

    def __contains__(self, sha: str) -> bool:
        """Whether the walk saw this commit."""
        number = self._number.get(sha.encode())
        return number is not None and self._at[number] != _NONE

    def tag_of(self, sha: str) -> int:
        """Return the index of the first tag that holds a commit; -1 if none does or the walk didn't see it."""
        return self._tag[self._number[sha.encode()]] if sha in self else _NONE

    def merge_of(self, sha: str) -> tuple[str, int] | None:
        """Return the commit that brought another one into a branch, and its time in seconds; None if it is in no
        branch.
        """
        number = self._merge[self._number[sha.encode()]] if sha in self else _NONE
        if number == _NONE:
            return None
        if len(self._names) != len(self._number):
            self._names = list(self._number)
        return self._names[number].decode("ascii"), self._at[number]


# --- Log ---

_FORMAT = "--format=%ct %H %P%n%at %ae%n%an%n%B"
_PROGRESS_EVERY = 2000
_CHUNK = 1 << 20
_MAX_RECORD = 8 << 20  # bytes of one commit; the rest of a longer one is ignored
_ENVIRONMENT = {**git.ENVIRONMENT, "GIT_FLUSH": "0"}  # else git flushes after every commit
TIMEOUT = 3600.0  # seconds for one walk


Prefilter = Callable[[bytes, bytes], bool]


def read_log(
    repository: Path,
    tips: Collection[str],
    without: Collection[str],
    graph: Graph,
    passes: Prefilter,
    progress: Callable[[int], None] = lambda count: None,
) -> Iterator[LogCommit]:
    """Yield the commits reachable from `tips` but not from `without` that pass the prefilter.

    `passes` gets the author line ("seconds address") and the message of each. All commits are added to `graph`.
    `progress` is called now and then with the number of commits read.

    Memory does not grow with messages. Raise Unreadable if git can't read the tree to its end.
    """
    if not tips:
        return
    for count, record in enumerate(_records(repository, tips, without), start=1):
        if not count % _PROGRESS_EVERY:
            progress(count)
        head, author, name, message = record.split(b"\n", 3)
        graph.add(head)
        if passes(author, message):
            committed, sha, *parents = head.decode("ascii").split(" ")
            authored, _, email = author.decode("utf-8", "replace").partition(" ")
            text = message.decode("utf-8", "replace")
            yield LogCommit(
                sha=sha,
                parents=tuple(filter(None, parents)),
                at=parse_timestamp(committed),
                authored_at=parse_timestamp(authored),
                author_email=email.lower(),
                author_name=name.decode("utf-8", "replace"),
                title=" ".join(text.lstrip("\n").partition("\n\n")[0].split()),
                message=text,
            )


def _records(repository: Path, tips: Collection[str], without: Collection[str]) -> Iterator[bytes]:
    """Yield git's output, split at the NULs that end each commit; no message can contain one."""
    arguments = ("log", "-z", "--no-color", "--no-notes", _FORMAT, "--stdin")
    with (
        tempfile.TemporaryFile() as stderr,  # an unread pipe would block git once it is full
        git.start(repository, *arguments, stderr=stderr, env=_ENVIRONMENT) as running,
    ):
        timer = threading.Timer(TIMEOUT, running.kill)
        timer.start()
        try:
            assert running.stdin
            assert running.stdout
            pipe = running.stdout.fileno()
            widen(pipe)
            # Write the request to git. If git has ended already, its stderr says why.
            with suppress(BrokenPipeError):
                running.stdin.write(revisions(tips, without))
                running.stdin.close()
            yield from _cut(pipe)
            if running.wait():
                stderr.seek(0)
                raise Unreadable(f"{repository}: git log: {git.error_line(stderr.read(1 << 20))}")
        finally:
            timer.cancel()
            running.kill()


def _cut(pipe: int) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = 0
    while chunk := os.read(pipe, _CHUNK):
        *complete, last = chunk.split(b"\0")
        if complete:
            yield b"".join((*rest, complete[0]))
            yield from complete[1:]
            rest, size = [], 0
        if size < _MAX_RECORD:
            rest.append(last)
        size += len(last)


# --- Order ---

STEP = timedelta(milliseconds=1)  # between neighbours, which is how exactly curves keep times
_BEFORE = 7 * 86_400  # seconds that a commit's clock may run ahead of its merge's


def git_order(repository: Path, tip: str, shas: Collection[str]) -> dict[str, datetime]:
    """Return the place in the history of `tip` of those commits that it holds, given by their full shas.

    The order of places is topological; a longer history gives the same places, unless clocks of its line went wrong.
    Raise Unreadable.
    """
    if not shas:
        return {}
    # From a commit of the first-parent line on that is older than all of these, if there is one
    dates = git.run(repository, "log", "--no-walk", "--stdin", "--format=%ct", stdin=revisions(shas))
    before = min(map(clamped_seconds, dates.split())) - _BEFORE
    line = ("rev-list", "--first-parent", "-1", f"--min-age={before}", tip)
    start = git.run(repository, *line).decode("ascii").strip() if before > 0 else ""
    limits = [tip, *([f"^{start}"] if start else [])]
    heads = git.run(repository, "rev-list", "--topo-order", "--timestamp", "--parents", *limits).splitlines()
    return places(heads, frozenset(shas))


def places(heads: Sequence[bytes], wanted: Collection[str]) -> dict[str, datetime]:
    """Return the places of wanted commits. `heads`: time in seconds, sha and parents of each commit, a tip first and
    children before parents.

    A date of the first-parent line that is later than the tip's, or earlier than that of the commit before it, is
    taken for wrong. Pure.
    """
    graph = Graph()
    for head in heads:
        graph.add(head)
    shas = [head.split(b" ", 2)[1].decode("ascii") for head in heads]
    graph.mark_merges(shas[:1])
    brought: Counter[str] = Counter()  # commits seen so far, by the one of the line that brought them
    line: list[tuple[str, datetime]] = []
    behind: dict[str, tuple[str, int]] = {}  # by wanted commit: what brought it, and how far it stands before that
    for sha in shas:
        merge = graph.merge_of(sha)
        if merge is None:
            continue
        if merge[0] == sha:
            line.append((sha, parse_timestamp(merge[1])))
        if sha in wanted:
            behind[sha] = merge[0], brought[merge[0]]
        brought[merge[0]] += 1
    # The times of the line, given tip first, with room before each for what it brought
    at: dict[str, datetime] = {}
    last: datetime | None = None
    for sha, dated in reversed(line):
        time = min(dated, line[0][1])
        last = at[sha] = time if last is None else max(time, last + brought[sha] * STEP)
    return {sha: at[merge] - steps * STEP for sha, (merge, steps) in behind.items()}
