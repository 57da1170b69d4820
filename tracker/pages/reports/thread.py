"""A mail of a thread beside what we take it to mean: its text, with the words that were relied on marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN = 6000  # characters of a mail; the archive has the rest


@dataclass(frozen=True, slots=True)
class MessageReading:
    """What a mail was taken to mean. `status`: counts, taken back, suggested; `rule`: which reading it is."""

    kind: str
    quote: str
    status: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text; `marked` where it was relied on."""

    text: str
    marked: bool


def passages(text: str, quotes: Iterable[str]) -> list[Passage]:
    """The text in parts; white space of a quote may differ, since rules read lines joined. Overlaps are marked once.

    >>> [each.text for each in passages("I can\\n reproduce it.", ["can reproduce"]) if each.marked]
    ['can\\n reproduce']
    """
    found: list[Passage] = []
    at = 0
    for start, end in _places(text, quotes):
        if start >= at:
            found += [Passage(text[at:start], False), Passage(text[start:end], True)]
            at = end
    return [each for each in (*found, Passage(text[at:], False)) if each.text]


def _places(text: str, quotes: Iterable[str]) -> Sequence[tuple[int, int]]:
    places = []
    for quote in dict.fromkeys(quotes):
        words = quote.split()[:80]
        if words and (match := re.search(r"\s+".join(map(re.escape, words)), text)):
            places.append(match.span())
    return sorted(places)
