"""A checkpoint: the commits up to which an epoch was read, sparser into the past, as history may change. Pure."""

from __future__ import annotations

from dataclasses import dataclass


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

    def back_to(self, commit: str) -> ReadCheckpoint:
        """Return the checkpoint as it was at one of its commits; an empty one for any other commit."""
        for number, mark in enumerate(self.marks):
            if mark[1] == commit:
                return ReadCheckpoint(self.marks[number:])
        return ReadCheckpoint()
