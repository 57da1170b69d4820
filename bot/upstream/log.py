"""The log of a tree as a stream: its graph is noted on the way, and only the commits that may concern us come out."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot import git
from bot.errors import Unreadable
from bot.upstream.graph import Graph
from bot.upstream.refs import moment

_FORMAT = "--format=%H %P%n%ct%n%at %aE%n%aN%n%B"
_CHUNK = 1 << 20
_LONGEST = 8 << 20  # bytes of one commit; what stands beyond them in a longer one is passed over
PATIENCE = 3600.0  # seconds for one walk


@dataclass(frozen=True, slots=True)
class LogCommit:
    """A commit as the log tells it; `at` is when it was committed, `message` is whole."""

    sha: str
    parents: tuple[str, ...]
    at: datetime
    authored_at: datetime
    author_email: str
    author_name: str
    message: str

    @property
    def title(self) -> str:
        return " ".join(self.message.partition("\n\n")[0].split())


Sieve = Callable[[bytes, bytes], bool]


def read_log(
    repository: Path, tips: Collection[str], without: Collection[str], graph: Graph, passes: Sieve
) -> Iterator[LogCommit]:
    """The commits that lead to `tips` and not to `without`. All of them go into `graph`; those are given whose author
    line ("seconds address") and message the sieve lets pass.

    Memory does not grow with messages. Unreadable where git can't read the tree to its end.
    """
    if not tips:
        return
    for record in _records(repository, tips, without):
        head, committed, author, name, message = (*record.split(b"\n", 4), b"", b"", b"", b"")[:5]
        graph.add(head, committed)
        if passes(author, message):
            yield _commit(head, committed, author, name, message)


def _commit(head: bytes, committed: bytes, author: bytes, name: bytes, message: bytes) -> LogCommit:
    sha, *parents = head.decode("ascii").split()
    authored, _, email = author.decode("utf-8", "replace").partition(" ")
    return LogCommit(
        sha=sha,
        parents=tuple(parents),
        at=moment(committed),
        authored_at=moment(authored),
        author_email=email.lower(),
        author_name=name.decode("utf-8", "replace"),
        message=message.decode("utf-8", "replace"),
    )


def _records(repository: Path, tips: Collection[str], without: Collection[str]) -> Iterator[bytes]:
    """git's answer, cut at its NULs: no message can hold one."""
    asked = "".join((*(f"{sha}\n" for sha in tips), *(f"^{sha}\n" for sha in without))).encode("ascii")
    command = git.command(repository, "log", "-z", "--no-color", "--no-notes", _FORMAT, "--stdin")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=git.ENVIRONMENT) as running:
        watch = threading.Timer(PATIENCE, running.kill)
        watch.start()
        try:
            assert running.stdin
            assert running.stdout
            assert running.stderr
            _tell(running.stdin, asked)
            yield from _cut(iter(lambda: running.stdout.read1(_CHUNK), b""))  # type: ignore[union-attr]
            complaint = running.stderr.read(10_000)
            if running.wait():
                raise Unreadable(f"{repository}: git log: {git.last_words(complaint)}")
        finally:
            watch.cancel()
            running.kill()


def _tell(stdin: object, asked: bytes) -> None:
    """Hand git its question; one that ended at once says why on its own."""
    try:
        stdin.write(asked)  # type: ignore[attr-defined]
        stdin.close()  # type: ignore[attr-defined]
    except BrokenPipeError:
        pass


def _cut(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = 0
    for chunk in chunks:
        *whole, last = chunk.split(b"\0")
        if whole:
            yield b"".join((*rest, whole[0]))
            yield from whole[1:]
            rest, size = [], 0
        if size < _LONGEST:
            rest.append(last)
        size += len(last)
    if any(rest):
        yield b"".join(rest)
