"""The written examples nearest to a sentence: by the n-grams they share, rare ones first. For people who ask why."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from bot.replies.classifier import examples
from bot.replies.classifier.examples import Example
from bot.replies.classifier.features import grams

_LEAST = 0.05  # what shares less is not shown


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An example, and how near it is: the cosine of weighed n-grams, 0 to 1."""

    example: Example
    nearness: float


class _Index:
    """The deciding sentences of examples, by n-gram; an n-gram weighs the more, the fewer sentences have it."""

    def __init__(self, known: Iterable[Example]) -> None:
        self.examples = list(known)
        self.holders: dict[str, list[int]] = defaultdict(list)
        described = [set(grams(each.evidence)) for each in self.examples]
        for number, found in enumerate(described):
            for gram in found:
                self.holders[gram].append(number)
        self.lengths = [math.sqrt(sum(self.weight(gram) ** 2 for gram in found)) or 1.0 for found in described]

    def weight(self, gram: str) -> float:
        return math.log(1 + len(self.examples) / (1 + len(self.holders.get(gram, ()))))

    def nearest(self, sentence: str, most: int) -> list[Neighbour]:
        found = set(grams(sentence))
        length = math.sqrt(sum(self.weight(gram) ** 2 for gram in found)) or 1.0
        shared: dict[int, float] = defaultdict(float)
        for gram in sorted(found & self.holders.keys()):
            for number in self.holders[gram]:
                shared[number] += self.weight(gram) ** 2
        near = {number: total / (length * self.lengths[number]) for number, total in shared.items()}
        near = {number: share for number, share in near.items() if share >= _LEAST}
        order = sorted(near, key=lambda number: (-near[number], number))[:most]
        return [Neighbour(self.examples[number], near[number]) for number in order]


def nearest(sentence: str, most: int = 3) -> list[Neighbour]:
    """Return the examples whose deciding sentence is most like this one, the nearest first."""
    return _index().nearest(sentence, most)


@cache
def _index() -> _Index:
    return _Index(examples.load())
