"""The log of a tree as a stream: builds the graph and yields only the commits that pass a prefilter."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.commits import LogCommit, parse_timestamp
from bot.git.graph import Graph

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
            yield _commit(head, author, name, message)


def _commit(head: bytes, author: bytes, name: bytes, message: bytes) -> LogCommit:
    committed, sha, *parents = head.decode("ascii").split(" ")
    authored, _, email = author.decode("utf-8", "replace").partition(" ")
    text = message.decode("utf-8", "replace")
    return LogCommit(
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
    revisions = "".join((*(f"{sha}\n" for sha in tips), *(f"^{sha}\n" for sha in without))).encode("ascii")
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
            _widen(running.stdout.fileno())
            _write_stdin(running.stdin, revisions)
            yield from _cut(_chunks(running.stdout.fileno()))
            if running.wait():
                stderr.seek(0)
                raise Unreadable(f"{repository}: git log: {git.error_line(stderr.read(1 << 20))}")
        finally:
            timer.cancel()
            running.kill()


def _widen(pipe: int) -> None:
    """Enlarge the pipe, if the system can, so that git may run ahead."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _CHUNK)


def _chunks(pipe: int) -> Iterator[bytes]:
    while chunk := os.read(pipe, _CHUNK):
        yield chunk


def _write_stdin(stdin: IO[bytes], revisions: bytes) -> None:
    """Write the request to git. If git has ended already, its stderr says why."""
    with suppress(BrokenPipeError):
        stdin.write(revisions)
        stdin.close()


def _cut(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = 0
    for chunk in chunks:
        *complete, last = chunk.split(b"\0")
        if complete:
            yield b"".join((*rest, complete[0]))
            yield from complete[1:]
            rest, size = [], 0
        if size < _MAX_RECORD:
            rest.append(last)
        size += len(last)
