"""What the search box offers while one types: the last term completed by a field, or by a name that is known. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracker.domain.search.query import FIELDS

MOST = 8
_LAST = re.compile(r'(?:^|\s)(-?)(?:([a-z]+):)?(?:"([^"]*)|([^"\s]*))\Z')
_SHORTEST = 2  # letters of a word before names are offered for it
_LONGEST = 200  # characters of what is typed


@dataclass(frozen=True, slots=True)
class SearchSuggestion:
    """`text`: the whole query with its last term completed; `label`: what that term is."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a kind: a field of the search that has it as a value."""

    kind: str
    name: str


def suggestions(text: str, names: Mapping[str, Sequence[str]]) -> list[SearchSuggestion]:
    """Return up to MOST completions of the last term. `names`: the known values by field."""
    last = _LAST.search(text) if len(text) <= _LONGEST else None
    if last is None:
        return []
    minus, field, quoted, plain = last.groups()
    begun = plain if quoted is None else quoted
    before = text[: last.start(1)]
    if field:
        found = [Name(field, name) for name in _matching(begun, names.get(field, ()))]
    elif len(begun) < _SHORTEST:
        return []
    else:
        found = [each for kind in names for each in named(kind, begun, names[kind])]
    offered = [SearchSuggestion(f"{before}{minus}{each.kind}:{field_value(each.name)}", each.kind) for each in found]
    if not field:
        begins = [each for each in FIELDS if each.startswith(begun.lower())]
        offered = [SearchSuggestion(f"{before}{minus}{each}:", "field") for each in begins] + offered
    return [each for each in offered if each.text != text][:MOST]


def named(kind: str, begun: str, names: Sequence[str], most: int = 3) -> list[Name]:
    """Return the first few names of a kind with a part that begins so."""
    return [Name(kind, name) for name in _matching(begun, names)][:most]


def _matching(begun: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the names that begin so, then those of which a part does: "xfs" finds "fs/xfs"."""
    wanted = begun.lower()
    begins = [name for name in names if name.lower().startswith(wanted)]
    yield from begins
    if wanted:
        part = re.compile(rf"[^a-z0-9]{re.escape(wanted)}")
        known = set(begins)
        yield from (name for name in names if name not in known and part.search(name.lower()))


def field_value(name: str) -> str:
    """Return a name as the value of a field, in quotes if it has spaces."""
    return f'"{name}"' if re.search(r"\s", name) else name
