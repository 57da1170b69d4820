"""How many reports of a release each filter value would show, cached until one of its reports changes.

The cache key is the release's newest event, which an index finds. A change without an event, such as a renamed machine,
shows after KEEP seconds at the latest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Count as Number
from django.db.models import OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce

from tracker.domain.events import OPEN, Verdict
from tracker.models import Release, Report
from tracker.pages.triage.filters import FLAGS

KEEP = 60.0  # seconds
MOST = 40  # values that a filter offers; others can still be given in the URL
# The counted filters and their columns.
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


_NO = ("", "0", "false")  # as SQLite and PostgreSQL write it


SECTIONS = (("merged", "merged_release"), ("shifted", "shift_left_release"))
_LISTED = "listed"  # the states of what a table lists


@dataclass(frozen=True, slots=True)
class Count:
    """A filter value and the number of the release's reports that have it."""

    value: str
    number: int


Counts = Mapping[str, Sequence[Count]]  # by filter; by section, how many are open and closed


def newest(column: str) -> Subquery:
    """Return a subquery for the newest event in a section of a release, to annotate with."""
    rows = Report.objects.filter(**{column: OuterRef("version")}).order_by("-revision")
    return Subquery(rows.values("revision")[:1])


def _number(column: str) -> Subquery:
    rows = Report.objects.filter(**{column: OuterRef("version")}).order_by()
    return Subquery(rows.values(column).annotate(many=Number("pk")).values("many"))


def stamped(releases: QuerySet[Release]) -> QuerySet[Release]:
    """Annotate releases with a stamp that changes with every event of one of their reports, and if one leaves."""
    return releases.annotate(
        news=Coalesce(newest("merged_release"), 0),
        other_news=Coalesce(newest("shift_left_release"), 0),
        many=Coalesce(_number("merged_release"), 0),
        other_many=Coalesce(_number("shift_left_release"), 0),
    )


def stamp(release: Release) -> str:
    """Return the stamp of a release that came from `stamped`."""
    values = vars(release)
    return ":".join(str(values[name]) for name in ("id", "news", "other_news", "many", "other_many"))


def counts(release: Release) -> Counts:
    """Return the counts of each filter, the most frequent value first; one query if something has changed."""
    key = f"counts:{stamp(release)}"
    found: Counts | None = cache.get(key)
    if found is None:
        found = _counted(release.version)
        cache.set(key, found, KEEP)
    return found


def _counted(version: str) -> Counts:
    """Count with one statement, each column of each section from its index. A report in both sections counts twice."""
    parts = [
        Report.objects.filter(**{column: version})
        .order_by()
        .values_list(Value(section), Value(name), Cast(counted, TextField()))
        .annotate(number=Number("pk"))
        for section, column in SECTIONS
        for name, counted in COUNTED.items()
    ]
    tallies: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
    sections: dict[str, Counter[str]] = {"merged": Counter(), "shifted": Counter()}
    parts += [
        Report.objects.filter(**{column: version})
        .exclude(verdict=Verdict.IMPROVEMENT)  # which the table shows on request only
        .order_by()
        .values_list(Value(section), Value(_LISTED), Cast("state", TextField()))
        .annotate(number=Number("pk"))
        for section, column in SECTIONS
    ]
    for section, name, value, number in parts[0].union(*parts[1:], all=True):
        if name == _LISTED:
            sections[section]["open" if value in OPEN else "closed"] += number
        else:
            tallies[name][value] += number
    by_section = {name: [Count(*each) for each in tally.items()] for name, tally in sections.items()}
    return {**{name: _offered(name, tally) for name, tally in tallies.items()}, **by_section}


def _offered(name: str, tally: Counter[str]) -> list[Count]:
    """Return the values of a filter as they are written in its URL."""
    if name in FLAGS:
        number = sum(many for value, many in tally.items() if value not in _NO)
        return [Count(FLAGS[name], number)] if number else []
    if name == "assigned":
        tally["nobody"] = tally.pop("", 0)
    counted = [(value, many) for value, many in tally.items() if value and many]
    return [Count(*each) for each in sorted(counted, key=lambda each: (-each[1], each[0]))[:MOST]]
