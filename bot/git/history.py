"""The commit graph of a walk: the first tag that holds each commit, and the merge that brought it into a branch. Pure.

A million commits take some 250 MB: each sha is stored once, as the key of its number, and all else in arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from bot.git.commits import Tag, clamped_seconds

_NONE = -1


class Graph:
    """Commits and their parents, added in any order, then queried. Parents that are never added are the border."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}
        self._first = array("i")  # the first parent's number
        self._more: dict[int, tuple[int, ...]] = {}  # the other parents, of merges
        self._at = array("q")  # commit time in seconds; -1: not added
        self._tag = array("i")
        self._merge = array("i")
        self._names: list[bytes] = []

    def add(self, head: bytes) -> None:
        """Add a commit, given as its time in seconds, its sha and its parents' shas, separated by spaces."""
        committed, sha, *parents = head.split(b" ")
        number = self._number.get(sha)
        if number is None:
            number = self._new(sha)
        self._at[number] = int(committed) if len(committed) < 12 and committed.isdigit() else clamped_seconds(committed)
        if parents and parents[0]:
            numbers = [self._of(parent) for parent in parents]
            self._first[number] = numbers[0]
            if len(numbers) > 1:
                self._more[number] = tuple(numbers[1:])

    def _of(self, sha: bytes) -> int:
        number = self._number.get(sha)
        return self._new(sha) if number is None else number

    def _new(self, sha: bytes) -> int:
        number = self._number[sha] = len(self._number)
        self._first.append(_NONE)
        self._at.append(_NONE)
        return number

    def mark_tags(self, tags: Sequence[Tag]) -> None:
        """Mark every commit with the first tag whose history holds it. `tags` are in order of release."""
        self._tag = array("i", [_NONE]) * len(self._number)
        for index, tag in enumerate(tags):
            number = self._number.get(tag.commit.encode())
            if number is not None:
                self._spread(number, self._tag, index)

    def mark_merges(self, heads: Iterable[str]) -> None:
        """Mark every commit with the one that brought it into a branch: the oldest on the first-parent line whose
        history holds it.
        """
        self._merge = array("i", [_NONE]) * len(self._number)
        for head in heads:
            for number in reversed(list(self._line(head))):
                self._spread(number, self._merge, number)

    def _line(self, head: str) -> Iterator[int]:
        """Yield a head and its first parents, as far as they were walked and are not marked yet."""
        number = self._number.get(head.encode(), _NONE)
        while number != _NONE and self._at[number] != _NONE and self._merge[number] == _NONE:
            yield number
            number = self._first[number]

    def _spread(self, start: int, marks: array[int], mark: int) -> None:
        """Mark a commit and all its ancestors that are not marked yet."""
        first, more, at = self._first, self._more, self._at
        if at[start] == _NONE or marks[start] != _NONE:
            return
        pending = [start]
        marks[start] = mark
        while pending:
            number = pending.pop()
            parents = (first[number], *more[number]) if number in more else (first[number],)
            for parent in parents:
                if parent != _NONE and at[parent] != _NONE and marks[parent] == _NONE:
                    marks[parent] = mark
                    pending.append(parent)

    def __contains__(self, sha: str) -> bool:
        """Whether the walk saw this commit."""
        number = self._number.get(sha.encode())
        return number is not None and self._at[number] != _NONE

    def tag_of(self, sha: str) -> int:
        """Return the index of the first tag that holds a commit; -1 if none does or the walk didn't see it."""
        return self._tag[self._number[sha.encode()]] if sha in self else _NONE

    def merge_of(self, sha: str) -> tuple[str, int] | None:
        """Return the commit that brought another one into a branch, and its time in seconds; None if it is in no
        branch.
        """
        number = self._merge[self._number[sha.encode()]] if sha in self else _NONE
        if number == _NONE:
            return None
        return self._name(number), self._at[number]

    def _name(self, number: int) -> str:
        if len(self._names) != len(self._number):
            self._names = list(self._number)
        return self._names[number].decode("ascii")
