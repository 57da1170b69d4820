"""public-inbox archives: git repositories in which each commit adds one mail, and their mirrors.

public-inbox-v2-format(5): the mail is the file `m`, a removal the file `d`. public-inbox-v1-format(5): the mail is a
file named by a digest of its Message-ID. An inbox has *epochs* (git/0.git, git/1.git, …), each of which is a source.
One `git log` names the mails, one `git cat-file --batch` unpacks them in parallel with us. A second unpacker was
measured, and is slower on two cores.

The cursor of an epoch is a *checkpoint*: the commits up to which it was read, sparser into the past, as history may
change. After a purge has rewritten history, reading resumes at the newest of them that is still in it.

To update a mirror, its newest epoch is fetched, and the epochs that follow it are cloned, each of which appears under
its name when it is complete.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from bot.archives.files import LIMIT, RawMail
from bot.git import repository
from bot.git.repository import Busy, Unreadable
from bot.processes import widen
from tracker.domain.events import ArchiveKind
from tracker.domain.text import counted

# --- Checkpoints ---


@dataclass(frozen=True, slots=True)
class ReadCheckpoint:
    """(number of mails read, commit), newest first. A thousand mails leave about ten marks."""

    marks: tuple[tuple[int, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> ReadCheckpoint:
        """Parse the output of `str`; a bare commit is valid, too, and invalid words are ignored."""
        marks = []
        for word in text.split():
            count, colon, commit = word.rpartition(":")
            if not colon or count.isdecimal():
                marks.append((int(count or 0), commit))
        return cls(tuple(marks))

    def __str__(self) -> str:
        return " ".join(f"{count}:{commit}" for count, commit in self.marks)

    @property
    def newest(self) -> str:
        return self.marks[0][1] if self.marks else ""

    @property
    def count(self) -> int:
        return self.marks[0][0] if self.marks else 0

    def to(self, commit: str, more: int) -> ReadCheckpoint:
        """Return the checkpoint after `more` mails, at `commit`. One older mark is kept per doubled distance."""
        count = self.count + more
        kept: dict[int, tuple[int, str]] = {}
        for mark in self.marks:
            kept[(count - mark[0]).bit_length()] = mark  # the oldest of its distance
        return ReadCheckpoint(((count, commit), *(mark for mark in kept.values() if mark[1] != commit)))


# --- Epochs ---

_SLICE = 256  # mails named to the unpacker at once
# ":100644 100644 <old> <new> M\tm": what a commit added, in both formats; deletions have no new blob.
_ADDED = re.compile(rb":\d{6} \d{6} [0-9a-f]{40,64} ([0-9a-f]{40,64}) [AM]\t(?:m|[0-9a-f]{2}/[0-9a-f]{38})\n")
_Named = tuple[str, str]  # a commit, and the blob of its mail


def epochs(path: Path) -> list[Path]:
    """Return the epochs of an inbox directory (git/0.git, git/1.git, …) in order, or `path` if it is one."""
    if repository.is_repository(path):
        return [path]
    numbered = [epoch for epoch in (path / "git").glob("*.git") if epoch.stem.isdecimal()]
    return sorted(numbered, key=lambda epoch: int(epoch.stem))


@dataclass(frozen=True, slots=True)
class EpochSource:
    """One epoch. Its cursor is a checkpoint, as above."""

    epoch: Path
    name: str
    resumes: bool = True
    exclusive: bool = True
    kind: ArchiveKind = ArchiveKind.PUBLIC

    def goal(self) -> str:
        return head(self.epoch)

    def is_done(self, cursor: str, goal: str) -> bool:
        return ReadCheckpoint.parse(cursor).newest == goal

    def resume(self, cursor: str) -> str:
        """Return the checkpoint as it was at its newest commit that is still in the history: a purge may rewrite it."""
        marks = ReadCheckpoint.parse(cursor).marks
        for number, (_, commit) in enumerate(marks):
            try:
                repository.run(self.epoch, "merge-base", "--is-ancestor", commit, "HEAD")
            except Unreadable:
                # Raises if the repository is broken, not rewritten
                repository.run(self.epoch, "cat-file", "-e", "HEAD^{commit}")
            else:
                return str(ReadCheckpoint(marks[number:]))
        return ""

    def mails(self, cursor: str, goal: str) -> Generator[RawMail]:
        return self.mails_after(ReadCheckpoint.parse(cursor).newest, goal)

    def mails_after(self, position: str, goal: str) -> Generator[RawMail]:
        """Yield the mails after a position, up to the goal."""
        return read_epoch(self.epoch, position, goal)

    def count(self, cursor: str) -> int:
        """Return the number of mails up to a cursor."""
        return ReadCheckpoint.parse(cursor).count

    def at(self, positions: Sequence[str]) -> Iterator[RawMail]:
        """Yield the mails at these positions once more."""
        for start in range(0, len(positions), _SLICE):
            reading = _EpochReading(self.epoch, commits=positions[start : start + _SLICE])
            try:
                yield from reading.mails()
            finally:
                reading.end()

    def after(self, cursor: str, position: str, seen: int) -> str:
        return str(ReadCheckpoint.parse(cursor).to(position, seen))


def head(epoch: Path) -> str:
    """Return the newest commit; "" if there is none yet. Raises Unreadable for a broken repository."""
    if not repository.is_repository(epoch):
        raise Unreadable(f"{epoch}: not a git repository; clone the epoch again")
    try:
        return repository.run(epoch, "rev-parse", "--verify", "--quiet", "HEAD").decode("ascii").strip()
    except Unreadable:
        if repository.run(epoch, "for-each-ref", "--count=1"):
            raise Unreadable(f"{epoch}: HEAD names a branch that does not exist; see `git symbolic-ref HEAD`") from None
        return ""


def read_epoch(epoch: Path, since: str = "", until: str = "HEAD") -> Generator[RawMail]:
    """Yield the mails added after the commit `since`, up to `until`, oldest first; positions are commits."""
    if not until or (until == "HEAD" and not head(epoch)):
        return
    reading = _EpochReading(epoch, since, until)
    try:
        yield from reading.mails()
    finally:
        reading.end()


class _EpochReading:
    """The processes of one pass: a `git log` that names mails, and the unpacker that it feeds."""

    def __init__(self, epoch: Path, since: str = "", until: str = "", commits: Sequence[str] = ()) -> None:
        self.epoch, self.since = epoch, since
        # A file, since a pipe that is not read would fill up and block git.
        self.errors = tempfile.TemporaryFile()  # closed by `end`  # noqa: SIM115
        span = ["--reverse", until, f"^{since}"] if since else ["--reverse", until]
        span = ["--no-walk=unsorted", *commits] if commits else span
        form = ("--raw", "--no-abbrev", "--no-renames", "--format=%H")
        self.log = self._start("log", *form, *span, "--")
        # Mails are rarely deltas of each other: the usual cache of 96 MB only costs.
        self.unpacker = self._start("-c", "core.deltaBaseCacheLimit=4m", "cat-file", "--batch", "--buffer")
        widen(_pipe(self.unpacker.stdout).fileno())
        self.named: SimpleQueue[list[_Named] | None] = SimpleQueue()
        self.feeder = threading.Thread(target=self._feed, daemon=True)
        self.feeder.start()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return repository.start(self.epoch, *arguments, stderr=self.errors, bufsize=1 << 18)

    def _feed(self) -> None:
        """Pass the names on in slices, until all are named or the unpacker has ended."""
        pipe = _pipe(self.unpacker.stdin)
        try:
            for names in self._slices():
                self.named.put(names)
                pipe.write("".join(f"{blob}\n" for _, blob in names).encode("ascii"))
                pipe.flush()
            pipe.close()
        except (OSError, ValueError):
            pass  # the unpacker ended early; its error output says why
        finally:
            self.named.put(None)

    def _slices(self) -> Iterator[list[_Named]]:
        names: list[_Named] = []
        commit = ""
        for line in _pipe(self.log.stdout):
            if line.startswith(b":"):
                if added := _ADDED.fullmatch(line):
                    names.append((commit, added[1].decode("ascii")))
            elif line != b"\n":
                commit = line.decode("ascii", "replace").strip()
            if len(names) >= _SLICE:
                yield names
                names = []
        if names:
            yield names

    def mails(self) -> Iterator[RawMail]:
        lost: list[str] = []
        read_to = self.since
        while (names := self.named.get()) is not None:
            for commit, blob in names:
                raw = self._unpacked(commit)
                if raw is None:  # its pack may have been replaced in the meantime
                    with suppress(Unreadable):
                        raw = repository.run(self.epoch, "cat-file", "blob", blob)[:LIMIT]
                if raw is None:
                    lost.append(commit)
                else:
                    read_to = read_to if lost else commit
                    yield RawMail(raw, commit, read_to)
        if self.log.wait() != 0:
            raise Unreadable(f"{self.epoch}: git log: {self._error_text()}")
        if lost:
            raise Unreadable(
                f"{self.epoch}: {counted(len(lost), 'mail')} can't be read from git, the first in commit"
                f" {lost[0]}; repair the repository (`git fsck`), then `read --again`"
            )

    def _unpacked(self, commit: str) -> bytes | None:
        """Return the next mail, or None if git does not have it."""
        pipe = _pipe(self.unpacker.stdout)
        header = pipe.readline().split()
        if not header:
            reason = self._error_text()
            raise Unreadable(
                f"{self.epoch}: git ended at commit {commit}: {reason}; `git fsck` there shows what is broken"
            )
        if header[-1] == b"missing" or len(header) != 3:
            return None
        size = int(header[2])
        raw = pipe.read(min(size, LIMIT))
        rest = size - len(raw) + 1  # including the line end that cat-file adds
        while rest > 0 and (skipped := pipe.read(min(rest, 1 << 20))):
            rest -= len(skipped)
        if rest:
            raise Unreadable(
                f"{self.epoch}: the mail in commit {commit} is truncated; `git fsck` there shows what is broken"
            )
        return raw

    def _error_text(self) -> str:
        """Return git's error message."""
        self.unpacker.wait(timeout=10)
        self.errors.seek(0)
        return repository.error_line(self.errors.read(100_000))

    def end(self) -> None:
        """Kill the processes that still run, and close all pipes."""
        for process in (self.log, self.unpacker):
            process.kill()
        self.feeder.join(timeout=5)
        for process in (self.log, self.unpacker):
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe and not pipe.closed:
                    with suppress(OSError):
                        pipe.close()
        self.errors.close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe
    return pipe


# --- Mirrors ---

_NUMBERED = re.compile(r"(?P<base>.*/)(?P<number>\d{1,4})(?P<end>(?:\.git)?)/?\Z")
_MOST_NEW = 100  # epochs at once
FETCHING = 3600.0  # seconds, where nothing else waits
CLONING = 24 * 3600


def is_mirror(path: Path) -> bool:
    """Whether a path is an inbox or an epoch, which can be fetched."""
    return _is_inbox(path) or repository.is_repository(path)


def refresh(path: Path) -> None:
    """Fetch what is new in an inbox or an epoch, and clone new epochs, however long it takes.

    Raises Unreadable with the epoch that could not be fetched; what is there can still be read.
    """
    fetch(path, FETCHING)
    clone_following(path)


def fetch(path: Path, timeout: float) -> None:
    """Fetch what is new in the epochs that are there, within `timeout` seconds each; without a remote they stay.

    Raises Unreadable with the epoch that could not be fetched.
    """
    clones = epochs(path)
    for epoch in clones[-1:] if _is_inbox(path) else clones:  # older epochs of an inbox are complete
        if _remote(epoch):
            repository.run(epoch, *repository.REMOTE_SETTINGS, "fetch", "--quiet", "origin", timeout=timeout)


def next_epoch(path: Path, timeout: float = 120.0) -> tuple[str, Path] | None:
    """Return the URL and our path of the epoch after the newest of an inbox, if its remote has one. `timeout`: seconds
    for the server.
    """
    clones = epochs(path) if _is_inbox(path) else []
    match = _NUMBERED.fullmatch(_remote(clones[-1])) if clones else None
    if not match or int(match["number"]) != int(clones[-1].stem):
        return None
    number = int(clones[-1].stem) + 1
    url = f"{match['base']}{number}{match['end']}"
    try:
        repository.run(
            clones[-1], *repository.REMOTE_SETTINGS, "ls-remote", "--quiet", "--heads", "--", url, timeout=timeout
        )
    except Unreadable:
        return None
    return url, path / "git" / f"{number}.git"


def clone_following(path: Path) -> int:
    """Clone the epochs that follow the newest one, which may take hours. Return how many.

    An epoch appears under its name when it is complete. Raises Busy while another process clones it, Unreadable if it
    can't be cloned.
    """
    for number in range(_MOST_NEW):
        following = next_epoch(path)
        if following is None:
            return number
        url, target = following
        with target.with_suffix(".lock").open("w") as lock:  # which ends with this process, however it ends
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(f"{target}: another process is cloning it") from None
            part = target.with_suffix(".part")  # no epoch: its name ends in .git
            shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
            options = ("clone", "--quiet", "--mirror", "--", url, str(part))
            repository.run(epochs(path)[-1], *repository.REMOTE_SETTINGS, *options, timeout=CLONING)
            part.rename(target)
    return _MOST_NEW


def _is_inbox(path: Path) -> bool:
    return (path / "git").is_dir()


def _remote(epoch: Path) -> str:
    try:
        return repository.run(epoch, "config", "--get", "remote.origin.url").decode("utf-8", "replace").strip()
    except Unreadable:
        return ""
