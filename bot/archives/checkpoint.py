"""A trail of the commits that were read up to, ever sparser into the past: history may be rewritten. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadCheckpoint:
    """(how many mails had been read, the commit), the newest first. A thousand mails leave about ten marks."""

    marks: tuple[tuple[int, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> ReadCheckpoint:
        """What `str` gave; a bare commit is a trail, too, and what can't be read is none."""
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
        """The trail after `more` mails, up to `commit`. Of older marks one stays for each doubling of the way back."""
        count = self.count + more
        kept: dict[int, tuple[int, str]] = {}
        for mark in self.marks:
            kept[(count - mark[0]).bit_length()] = mark  # the oldest of its distance
        return ReadCheckpoint(((count, commit), *(mark for mark in kept.values() if mark[1] != commit)))

    def back_to(self, commit: str) -> ReadCheckpoint:
        """The trail as it was at one of its commits; an empty one where it never was there."""
        for number, mark in enumerate(self.marks):
            if mark[1] == commit:
                return ReadCheckpoint(self.marks[number:])
        return ReadCheckpoint()
