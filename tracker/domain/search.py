"""The search box: `subsystem:xfs worse:>10 "page fault" -drm after:2026-03` parsed, and completed. Pure.

A query has phrases that must all occur, those that must not (with a minus), and fields. While somebody types, the last
term is completed by a field, or by a known name of which a word begins so. A word with a colon whose beginning is not
a field is a word, such as `mm:` in a title or `http://…`. A value that its field can't have is refused by name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from tracker.domain.events import InvalidInput

# --- The query ---

LONGEST, MOST_TERMS = 1000, 30  # characters; terms
TEXTS = ("subsystem", "suite", "metric", "machine", "author", "assigned", "release", "culprit", "title")
CHOICES = ("state", "awaiting", "kind", "stable", "blocking")
SIZES = ("worse", "better")
DATES = ("after", "before")
FIELDS = (*TEXTS, *CHOICES, *SIZES, *DATES)
_TERM = re.compile(r'(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))')
_LIKE_A_FIELD = re.compile(r"([a-z_]{2,30}):[^/\s]")
_SIZE = re.compile(r">?=?(\d{1,6}(?:\.\d{1,3})?)%?")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """`subsystem:xfs`, or with a minus its opposite. `value` is a text, a size in per cent, or a time."""

    name: str
    value: str | float | datetime
    negated: bool


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Phrases that must all occur, those that must not, and fields."""

    phrases: tuple[str, ...]
    without: tuple[str, ...]
    fields: tuple[FieldTerm, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.phrases or self.without or self.fields)


def parse(text: str) -> SearchQuery:
    """Return what was asked for; raise InvalidInput, which names the term, for a value that its field can't have.

    A word with a colon whose beginning is not a field is a word: `mm:` in a title, `http://…`.
    """
    if len(text) > LONGEST:
        raise InvalidInput(f"expected at most {LONGEST:,} characters; found {len(text):,}")
    phrases: list[str] = []
    without: list[str] = []
    fields: list[FieldTerm] = []
    for number, term in enumerate(_TERM.finditer(text.replace("\0", " "))):
        if number >= MOST_TERMS:
            raise InvalidInput(f"expected at most {MOST_TERMS} terms")
        minus, name, quoted, word = term.groups()
        value, plain = quoted if quoted is not None else word, term[0][len(minus) :].strip('"')
        if name in FIELDS and value:
            fields.append(FieldTerm(name, _value(name, value), bool(minus)))
        elif any(map(str.isalnum, plain)):  # the rest is in no index
            (without if minus else phrases).append(plain)
    return SearchQuery(tuple(phrases), tuple(without), tuple(fields))


def unknown_fields(query: SearchQuery) -> list[str]:
    """Return what looks like a field but is not one: `reported_by` of `reported_by:person`, taken as a word."""
    words = (_LIKE_A_FIELD.match(phrase) for phrase in (*query.phrases, *query.without))
    return list(dict.fromkeys(word[1] for word in words if word))


def _value(name: str, value: str) -> str | float | datetime:
    if name in SIZES:
        size = _SIZE.fullmatch(value)
        if size is None:
            raise InvalidInput(f"{name}: expected a change in per cent, as in {name}:>10; found {value[:40]!r}")
        return float(size[1])
    if name not in DATES:
        return value
    date = _DATE.fullmatch(value)
    try:
        if date is None:
            raise ValueError
        return datetime(int(date[1]), int(date[2] or 1), int(date[3] or 1), tzinfo=UTC)  # when it begins
    except ValueError:
        raise InvalidInput(f"{name}: expected a date like 2026-03 or 2026-03-15; found {value[:40]!r}") from None


# --- Completion ---

MOST = 8
_LAST = re.compile(r'(?:^|\s)(-?)(?:([a-z]+):)?(?:"([^"]*)|([^"\s]*))\Z')
_SHORTEST = 2  # letters of a word before names are offered for it
_LONGEST = 200  # characters of what is typed


@dataclass(frozen=True, slots=True)
class SearchSuggestion:
    """`text`: the whole query with its last term completed; `label`: what that term is."""

    text: str
    label: str


def suggestions(text: str, names: Mapping[str, Sequence[str]]) -> list[SearchSuggestion]:
    """Return up to MOST completions of the last term. `names`: the known values by field."""
    last = _LAST.search(text) if len(text) <= _LONGEST else None
    if last is None:
        return []
    minus, field, quoted, plain = last.groups()
    begun = plain if quoted is None else quoted
    before = text[: last.start(1)]
    offered: list[SearchSuggestion] = []
    if field:
        completions = [(field, name) for name in _matching(begun, names.get(field, ()))]
    elif len(begun) < _SHORTEST:
        return []
    else:
        begins = [candidate for candidate in FIELDS if candidate.startswith(begun.lower())]
        offered += [SearchSuggestion(f"{before}{minus}{candidate}:", "field") for candidate in begins]
        completions = [(kind, name) for kind in names for name in named(begun, names[kind])]
    for kind, name in completions:
        offered.append(SearchSuggestion(f"{before}{minus}{kind}:{field_value(name)}", kind))
    return [suggestion for suggestion in offered if suggestion.text != text][:MOST]


def named(begun: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Return the first few names with a part that begins so."""
    return list(islice(_matching(begun, names), most))


def _matching(begun: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the names that begin so, then those of which a part does: "xfs" finds "fs/xfs"."""
    wanted = begun.lower()
    begins = [name for name in names if name.lower().startswith(wanted)]
    yield from begins
    if wanted:
        part = re.compile(rf"[^a-z0-9]{re.escape(wanted)}")
        seen = set(begins)
        yield from (name for name in names if name not in seen and part.search(name.lower()))


def field_value(name: str) -> str:
    """Return a name as the value of a field, in quotes if it has spaces."""
    return f'"{name}"' if re.search(r"\s", name) else name
