"""A mail of a thread and its readings: its text, with the quoted evidence marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN = 6000  # characters per mail; the archive has the rest


@dataclass(frozen=True, slots=True)
class MessageReading:
    """How a mail was read. `status`: counts, undone or suggested; `rule`: the rule that read it."""

    kind: str
    quote: str
    status: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text; `marked` if it is the evidence of a reading."""

    text: str
    marked: bool


def passages(text: str, quotes: Iterable[str]) -> list[Passage]:
    """Split a text at its quotes. White space may differ, since rules read joined lines; overlaps are marked once.

    >>> [each.text for each in passages("I can\\n reproduce it.", ["can reproduce"]) if each.marked]
    ['can\\n reproduce']
    """
    found: list[Passage] = []
    at = 0
    for start, end in _spans(text, quotes):
        if start >= at:
            found += [Passage(text[at:start], False), Passage(text[start:end], True)]
            at = end
    return [each for each in (*found, Passage(text[at:], False)) if each.text]


def _spans(text: str, quotes: Iterable[str]) -> Sequence[tuple[int, int]]:
    spans = []
    for quote in dict.fromkeys(quotes):
        words = quote.split()[:80]
        if words and (match := re.search(r"\s+".join(map(re.escape, words)), text)):
            spans.append(match.span())
    return sorted(spans)
