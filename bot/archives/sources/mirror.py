"""Update mirrors before they are read: `git fetch` the epochs, and clone the next one."""

from __future__ import annotations

import re
from pathlib import Path

from bot.archives.sources.public_inbox import epochs
from bot.errors import Unreadable
from bot.git import repository as git

_NUMBERED = re.compile(r"(?P<base>.*/)(?P<number>\d{1,4})(?P<end>(?:\.git)?)/?\Z")
_MOST_NEW = 100  # epochs at once
_LOW_SPEED_LIMIT = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")  # gives up on a server that hangs


def refresh(path: Path) -> None:
    """Fetch what is new in an inbox or an epoch; one without a remote is left as it is.

    Raises Unreadable with the epoch that could not be fetched; what is there can still be read.
    """
    known = epochs(path)
    for epoch in known[-1:] if _is_inbox(path) else known:  # older epochs of an inbox are complete
        if _remote(epoch):
            git.run(epoch, *_LOW_SPEED_LIMIT, "fetch", "--quiet", "origin", timeout=3600)
    if known and _is_inbox(path):
        for _ in range(_MOST_NEW):
            following = _clone_next(path, epochs(path)[-1])
            if not following:
                break


def _is_inbox(path: Path) -> bool:
    return (path / "git").is_dir()


def _remote(epoch: Path) -> str:
    try:
        return git.run(epoch, "config", "--get", "remote.origin.url").decode("utf-8", "replace").strip()
    except Unreadable:
        return ""


def _clone_next(path: Path, epoch: Path) -> bool:
    """Clone the next epoch, if the remote has it. Returns whether it did."""
    found = _NUMBERED.fullmatch(_remote(epoch))
    if not found or int(found["number"]) != int(epoch.stem):
        return False
    number = int(epoch.stem) + 1
    url = f"{found['base']}{number}{found['end']}"
    try:
        git.run(epoch, *_LOW_SPEED_LIMIT, "ls-remote", "--quiet", "--heads", "--", url, timeout=120)
    except Unreadable:
        return False
    target = path / "git" / f"{number}.git"
    git.run(epoch, *_LOW_SPEED_LIMIT, "clone", "--quiet", "--mirror", "--", url, str(target), timeout=24 * 3600)
    return True
