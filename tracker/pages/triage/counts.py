"""How many reports of a release each filter would show: counted once after a change, and kept in memory until the next.

A release's newest event says whether anything has changed, and is found in an index. What moves a count without an
event, as a new machine's name does, shows after KEEP at the latest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Count as Number
from django.db.models import OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce

from tracker.models import Release, Report

KEEP = 60.0  # seconds
MOST = 40  # values that a filter offers; any other can be asked for by its name
# The filters that are counted, with their columns.
COUNTED: Mapping[str, str] = {
    "state": "state",
    "kind": "verdict",
    "awaiting": "awaited",
    "subsystem": "subsystem",
    "suite": "suite",
    "metric": "metric",
    "machine": "machine",
    "author": "author",
    "assigned": "assignee",
    "stable": "lacks_fix",
    "blocking": "blocks",
}


@dataclass(frozen=True, slots=True)
class Count:
    """A value of a filter, and how many reports of the release have it."""

    value: str
    number: int


Counts = Mapping[str, Sequence[Count]]


def newest(column: str) -> Subquery:
    """The newest event of a release's section, for an annotation."""
    rows = Report.objects.filter(**{column: OuterRef("version")}).order_by("-revision")
    return Subquery(rows.values("revision")[:1])


def stamped(releases: QuerySet[Release]) -> QuerySet[Release]:
    """Releases, each with a stamp that changes when anything happens to one of its reports."""
    return releases.annotate(news=Coalesce(newest("merged"), 0), other_news=Coalesce(newest("shifted"), 0))


def stamp(release: Release) -> str:
    """Of a release that came with its stamp."""
    return f"{release.pk}:{release.news}:{release.other_news}"  # type: ignore[attr-defined]


def counts(release: Release) -> Counts:
    """What each filter would show, the most frequent value first; one query where something has changed."""
    key = f"counts:{stamp(release)}"
    found: Counts | None = cache.get(key)
    if found is None:
        found = _counted(release.version)
        cache.set(key, found, KEEP)
    return found


def _counted(version: str) -> Counts:
    """One statement: each column of each section by itself, from its index. Who stands in both sections is two rows."""
    parts = [
        Report.objects.filter(**{section: version})
        .order_by()
        .values_list(Value(name), Cast(column, TextField()))
        .annotate(number=Number("pk"))
        for section in ("merged", "shifted")
        for name, column in COUNTED.items()
    ]
    tallies: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
    for name, value, number in parts[0].union(*parts[1:], all=True):
        tallies[name][value] += number
    return {name: _offered(name, tally) for name, tally in tallies.items()}


def _offered(name: str, tally: Counter[str]) -> list[Count]:
    """The values of a filter as its URL has them."""
    if name == "stable":
        number = tally["true"] + tally["1"]  # as PostgreSQL and SQLite write it
        return [Count("missing", number)] if number else []
    if name == "blocking":
        number = sum(many for value, many in tally.items() if value)
        return [Count("yes", number)] if number else []
    if name == "assigned":
        tally["nobody"] = tally.pop("", 0)
    told = [(value, many) for value, many in tally.items() if value and many]
    return [Count(*each) for each in sorted(told, key=lambda each: (-each[1], each[0]))[:MOST]]
