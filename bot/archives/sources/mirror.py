"""Update mirrors of public-inbox archives: `git fetch` the newest epoch, and clone the epochs that follow it."""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.archives.sources.public_inbox import epochs
from bot.errors import Busy, Unreadable
from bot.git import repository as git

_NUMBERED = re.compile(r"(?P<base>.*/)(?P<number>\d{1,4})(?P<end>(?:\.git)?)/?\Z")
_MOST_NEW = 100  # epochs at once
_LOW_SPEED_LIMIT = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")  # gives up on a server that hangs
FETCHING = 3600.0  # seconds, where nothing else waits
CLONING = 24 * 3600


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """An epoch that the remote has and we have not."""

    url: str
    target: Path


def is_mirror(path: Path) -> bool:
    """Whether a path is an inbox or an epoch, which can be fetched."""
    return _is_inbox(path) or git.is_repository(path)


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
    known = epochs(path)
    for epoch in known[-1:] if _is_inbox(path) else known:  # older epochs of an inbox are complete
        if _remote(epoch):
            git.run(epoch, *_LOW_SPEED_LIMIT, "fetch", "--quiet", "origin", timeout=timeout)


def next_epoch(path: Path, timeout: float = 120.0) -> NextEpoch | None:
    """Return the epoch after the newest of an inbox, if its remote has one. `timeout`: seconds for the server."""
    known = epochs(path) if _is_inbox(path) else []
    found = _NUMBERED.fullmatch(_remote(known[-1])) if known else None
    if not found or int(found["number"]) != int(known[-1].stem):
        return None
    number = int(known[-1].stem) + 1
    url = f"{found['base']}{number}{found['end']}"
    try:
        git.run(known[-1], *_LOW_SPEED_LIMIT, "ls-remote", "--quiet", "--heads", "--", url, timeout=timeout)
    except Unreadable:
        return None
    return NextEpoch(url, path / "git" / f"{number}.git")


def clone_following(path: Path) -> int:
    """Clone the epochs that follow the newest one, which may take hours. Return how many.

    An epoch appears under its name when it is complete. Raises Busy while another process clones it, Unreadable if it
    can't be cloned.
    """
    for number in range(_MOST_NEW):
        following = next_epoch(path)
        if following is None:
            return number
        with _alone(following.target.with_suffix(".lock")):
            part = following.target.with_suffix(".part")  # no epoch: its name ends in .git
            shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
            options = ("clone", "--quiet", "--mirror", "--", following.url, str(part))
            git.run(epochs(path)[-1], *_LOW_SPEED_LIMIT, *options, timeout=CLONING)
            part.rename(following.target)
    return _MOST_NEW


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends."""
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"{file.with_suffix('.git')}: another process is cloning it") from None
        yield


def _is_inbox(path: Path) -> bool:
    return (path / "git").is_dir()


def _remote(epoch: Path) -> str:
    try:
        return git.run(epoch, "config", "--get", "remote.origin.url").decode("utf-8", "replace").strip()
    except Unreadable:
        return ""
