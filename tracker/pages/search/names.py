"""The names that a search can ask for, from all reports, kept for some minutes: a page or a key press asks for none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import F, Value
from django.urls import reverse

from tracker.domain import versions
from tracker.domain.events import Awaited, Verdict
from tracker.domain.search.completion import named
from tracker.domain.search.query import SearchQuery
from tracker.models import Machine, Metric, Release, Report, Scenario
from tracker.pages.triage.filters import STATES

KINDS = ("subsystem", "metric", "machine", "author")  # that have pages
_KEEP = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class NamedPage:
    """A page that has more of what was searched for."""

    kind: str
    name: str
    href: str


def known_names() -> Mapping[str, Sequence[str]]:
    """Return the values of each field that has names or choices."""
    found: dict[str, list[str]] | None = cache.get("search-names")
    if found is None:
        found = {}
        for kind, name in _names():
            found.setdefault(kind, []).append(name)
        parsed = [version for name in found.get("release", ()) if (version := versions.parse(name))]
        found["release"] = [version.cycle for version in sorted(parsed, reverse=True)]
        cache.set("search-names", found, _KEEP)
    return {
        **{kind: found.get(kind, []) for kind in (*KINDS, "suite", "release")},
        "state": list(STATES),
        "awaiting": [each.value for each in Awaited],
        "kind": [each.value for each in Verdict],
        "stable": ["missing"],
        "blocking": ["yes"],
    }


def _names() -> Iterator[tuple[str, str]]:
    """Yield kind and name, in order, by one query; reports have indexes that begin with subsystem and author."""
    columns = [("subsystem", Report, "subsystem"), ("metric", Metric, "name"), ("machine", Machine, "name")]
    columns += [("author", Report, "author"), ("suite", Scenario, "suite"), ("release", Release, "version")]
    rows = [
        model._default_manager.order_by().annotate(kind=Value(kind), named=F(column)).values_list("kind", "named")
        for kind, model, column in columns
    ]
    for kind, name in rows[0].union(*rows[1:]).order_by("kind", "named"):  # UNION has each name once
        if name:
            yield kind, name


def pages_named(query: SearchQuery) -> list[NamedPage]:
    """Return the pages of metrics, machines, subsystems and authors whose name has a word of a query without fields."""
    if query.fields or len(query.phrases) > 3:
        return []
    names = known_names()
    found = [
        each for kind in KINDS for word in query.phrases if len(word) > 1 for each in named(kind, word, names[kind])
    ]
    return [NamedPage(each.kind, each.name, reverse("thing", args=[each.kind, each.name])) for each in found]
