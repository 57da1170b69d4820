"""Aliases: the addresses and names of one person, from a file in git's mailmap format (gitmailmap(5)).

Dana Brook <dana@dev.example> <dana@home.example>
Dana Brook <dana@dev.example> D. Brook <db@old.example>
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MAX_LINES = 100_000
_LINE = re.compile(r"([^<>#]{0,200}?)\s*<([^<>\s]{1,300})>\s*(?:([^<>#]{0,200}?)\s*<([^<>\s]{1,300})>)?\s*(?:#.*)?\Z")


@dataclass(frozen=True, slots=True)
class Aliases:
    """Maps each alias to its proper address, and each proper address to its aliases; all in lower case."""

    proper: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, address: str) -> frozenset[str]:
        """Return every address of the same person, including this one."""
        proper = self.proper.get(address, address)
        return self.others.get(proper, frozenset()) | {proper, address}


def read_mailmap(text: str) -> Aliases:
    """Parse a mailmap; invalid lines are skipped, as git does."""
    proper: dict[str, str] = {}
    for line in text.split("\n")[:MAX_LINES]:
        found = _LINE.match(line.strip())
        if found and found[4] and found[4].lower() != found[2].lower():
            proper[found[4].lower()] = found[2].lower()
    return Aliases(proper, _grouped(proper.items()))


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for other, address in pairs:
        groups.setdefault(address, set()).add(other)
    return {address: frozenset(others) for address, others in groups.items()}
