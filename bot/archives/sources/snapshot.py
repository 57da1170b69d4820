"""Sources that are read whole or not at all: the cursor holds size and time stamp as of the last reading."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class SnapshotSource:
    """Base class of sources that can't resume."""

    __slots__ = ()
    resumes = False
    exclusive = True

    def goal(self) -> str:
        return ""

    def is_done(self, cursor: str, goal: str) -> bool:
        return cursor == goal

    def resume(self, cursor: str) -> str:
        return ""

    def after(self, cursor: str, position: str, seen: int) -> str:
        return position


def fingerprint(paths: Iterable[Path]) -> str:
    """Return size and modification time; they change whenever a file or a folder may have something new."""
    stats = [path.stat() for path in paths]
    return " ".join(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)
