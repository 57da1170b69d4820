"""Sources that are read whole or not at all: their cursor says what they looked like when they were read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class SnapshotSource:
    """What such sources have in common."""

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


def looks(places: Iterable[Path]) -> str:
    """Changes whenever there may be something new in a file or a folder."""
    stats = [place.stat() for place in places]
    return " ".join(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)
