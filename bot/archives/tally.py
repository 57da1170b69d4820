"""Counts of what a reading did. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ReadTally:
    """Mails seen, and of those: report mails (and how many repeat a culprit), replies, already known, pending,
    quarantined.
    """

    seen: int = 0
    reports: int = 0
    repeated: int = 0
    replies: int = 0
    known: int = 0
    pending: int = 0
    quarantined: int = 0
    kept: int = 0  # newly stored

    def __iadd__(self, other: ReadTally) -> ReadTally:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self
