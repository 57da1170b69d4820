"""Values read from git: tags, commits of the log, times. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that names a kernel version or a day of linux-next, its commit, and when it was made."""

    name: str
    commit: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LogCommit:
    """A commit of the log. `at` is the commit time; `title` is on one line, `message` is complete."""

    sha: str
    parents: tuple[str, ...]
    at: datetime
    authored_at: datetime
    author_email: str
    author_name: str
    title: str
    message: str = ""

    @property
    def authored(self) -> tuple[int, str]:
        """What a rebase keeps: the author time in seconds, and the author's address."""
        return int(self.authored_at.timestamp()), self.author_email


def parse_timestamp(seconds: str | bytes | int) -> datetime:
    """Return a time from git; the epoch if it is out of range."""
    try:
        return datetime.fromtimestamp(int(seconds or 0), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def clamped_seconds(seconds: bytes) -> int:
    """Return a time from git, limited to 41 bits for an array of integers; 0 if it is not a number."""
    try:
        return max(0, min(int(seconds), 1 << 40))
    except ValueError:
        return 0
