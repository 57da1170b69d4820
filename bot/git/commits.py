"""What git tells, as values: tags, commits of the log, moments. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that names a version of the kernel or a day of linux-next, its commit, and when it was made."""

    name: str
    commit: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LogCommit:
    """A commit as the log tells it; `at` is when it was committed. The title is on one line, the message is whole."""

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
        """What a rebase keeps: when it was written, in seconds, and by which address."""
        return int(self.authored_at.timestamp()), self.author_email


def moment(seconds: str | bytes | int) -> datetime:
    """A time of git; one that no calendar knows is the epoch."""
    try:
        return datetime.fromtimestamp(int(seconds or 0), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def clipped(seconds: bytes) -> int:
    """A time of git in 41 bits, for an array of numbers; what is no number counts as the epoch."""
    try:
        return max(0, min(int(seconds), 1 << 40))
    except ValueError:
        return 0
