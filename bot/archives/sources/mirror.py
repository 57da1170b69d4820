"""Mirrors brought up to date before they are read: `git fetch` of each epoch, and a clone of the one that follows."""

from __future__ import annotations

import re
from pathlib import Path

from bot.archives.sources.public_inbox import epochs
from bot.errors import Unreadable
from bot.git import repository as git

_NUMBERED = re.compile(r"(?P<base>.*/)(?P<number>\d{1,4})(?P<end>(?:\.git)?)/?\Z")
_MOST_NEW = 100  # epochs at once
_PATIENCE = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")  # a server that hangs is given up


def refresh(place: Path) -> None:
    """Fetch what is new in an inbox or an epoch; one without a remote is left as it is.

    Unreadable names the epoch that could not be fetched; what is there can be read all the same.
    """
    known = epochs(place)
    for epoch in known[-1:] if _is_inbox(place) else known:  # older epochs of an inbox have come to their end
        if _remote(epoch):
            git.run(epoch, *_PATIENCE, "fetch", "--quiet", "origin", timeout=3600)
    if known and _is_inbox(place):
        for _ in range(_MOST_NEW):
            following = _clone_next(place, epochs(place)[-1])
            if not following:
                break


def _is_inbox(place: Path) -> bool:
    return (place / "git").is_dir()


def _remote(epoch: Path) -> str:
    try:
        return git.run(epoch, "config", "--get", "remote.origin.url").decode("utf-8", "replace").strip()
    except Unreadable:
        return ""


def _clone_next(place: Path, epoch: Path) -> bool:
    """Clone the epoch after this one, where the remote has it."""
    found = _NUMBERED.fullmatch(_remote(epoch))
    if not found or int(found["number"]) != int(epoch.stem):
        return False
    number = int(epoch.stem) + 1
    url = f"{found['base']}{number}{found['end']}"
    try:
        git.run(epoch, *_PATIENCE, "ls-remote", "--quiet", "--heads", "--", url, timeout=120)
    except Unreadable:
        return False
    target = place / "git" / f"{number}.git"
    git.run(epoch, *_PATIENCE, "clone", "--quiet", "--mirror", "--", url, str(target), timeout=24 * 3600)
    return True
