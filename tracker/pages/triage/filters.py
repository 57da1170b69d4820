"""The query of a table, read from and written to a URL: filters, order, grouping, page; presets.

`?state=working&machine!=lab7-m1&age=2w`: a filter given more than once matches any of its values; with `!` after its
name it matches none of them. `_POSITIVE` lists the filters, and each gets its negation; CONTRIBUTING.md tells how to
add one. Improvements need no action, so they are included on request only.

An unknown parameter or value is an InvalidQuery, raised before any query is made; it names each parameter and what
was expected. The page is a cursor (tracker/pages/http.py). Presets, as links above the table, are the questions that
release managers ask every day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict

from tracker.domain.events import CLOSED, OPEN, Awaited, InvalidInput, ReportedBy, State, Verdict
from tracker.models import Event, Release, Report
from tracker.pages.http import CursorError, Key, Order
from tracker.services.report_summary import clipped

# --- Filters ---

MOST = 50  # values per filter
LONGEST = 500  # characters of a value
MOST_WORDS = 20
NOT = "!"
# `open` and `closed` stand for several states.
STATES: Mapping[str, tuple[str, ...]] = {
    "open": tuple(sorted(OPEN)),
    "closed": tuple(sorted(CLOSED)),
    **{state.value: (state.value,) for state in State},
}
_SPAN = re.compile(r"(\d{1,5})([hdwmy])\Z")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 720, "y": 8760}


class Texts(forms.Field):
    """The values of one parameter: at most MOST, each at most LONGEST characters. Empty values are ignored."""

    widget = forms.SelectMultiple

    def clean(self, value: Any) -> list[str]:
        texts = [text for text in value or () if text]
        if len(texts) > MOST:
            raise forms.ValidationError(f"expected at most {MOST} values; found {len(texts)}")
        return [self.one(text) for text in texts]

    def one(self, text: str) -> str:
        if len(text) > LONGEST or "\0" in text:
            raise forms.ValidationError(f"expected one name; found {text[:40]!r}")
        return text


class SearchedWords(Texts):
    """Words to search for: at most MOST_WORDS in all, since each is a condition of the query."""

    def clean(self, value: Any) -> list[str]:
        texts: list[str] = super().clean(value)
        if (count := sum(len(text.split()) for text in texts)) > MOST_WORDS:
            raise forms.ValidationError(f"expected at most {MOST_WORDS} words; found {count}")
        return texts


class Choices(Texts):
    """Values from a fixed list."""

    def __init__(self, *, known: Iterable[str], **more: Any) -> None:
        super().__init__(**more)
        self.known = tuple(known)

    def one(self, text: str) -> str:
        if text not in self.known:
            raise forms.ValidationError(f"expected {', '.join(self.known)}; found {text[:40]!r}")
        return text


class Spans(Texts):
    """Durations: 36h, 3d, 2w, 6m, 1y."""

    def one(self, text: str) -> str:
        if not _SPAN.match(text):
            raise forms.ValidationError(f"expected a duration like 36h, 3d, 2w, 6m or 1y; found {text[:40]!r}")
        return text


class Moments(Texts):
    """Days, or minutes in UTC: 2026-03-01, 2026-03-01T09:30."""

    def one(self, text: str) -> str:
        try:
            moment = datetime.fromisoformat(text)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment
        except (ValueError, OverflowError):
            expected = "expected a day or a time in UTC, like 2026-03-01 or 2026-03-01T09:30"
            raise forms.ValidationError(f"{expected}; found {text[:40]!r}") from None
        moment = moment.replace(tzinfo=None)
        return moment.date().isoformat() if len(text) <= len("2026-03-01") else moment.isoformat("T", "minutes")


class AnyOf(django_filters.Filter):
    """Rows whose column has one of the values."""

    field_class: type[Texts] = Texts

    def filter(self, qs: QuerySet[Report], value: list[str]) -> QuerySet[Report]:
        if not value:
            return qs
        condition = self.condition(value)
        return qs.exclude(condition) if self.exclude and condition else qs.filter(condition)

    def condition(self, values: list[str]) -> Q:
        return Q(**{f"{self.field_name}__in": [clipped(value) for value in values]})


class Addresses(Texts):
    """Addresses, lowercased as they are stored."""

    def one(self, text: str) -> str:
        return super().one(text).lower()


class ByAuthor(AnyOf):
    field_class = Addresses


class OneOf(AnyOf):
    field_class = Choices


class InStates(OneOf):
    def condition(self, values: list[str]) -> Q:
        return Q(state__in=sorted({state for value in values for state in STATES[value]}))


class Since(AnyOf):
    """Rows whose time is at least this long ago."""

    field_class = Spans

    def condition(self, values: list[str]) -> Q:
        spans = [_SPAN.match(value) for value in values]
        least = min(int(span[1]) * _HOURS[span[2]] for span in spans if span)
        now: datetime = self.parent.now
        try:
            return Q(**{f"{self.field_name}__lte": now - timedelta(hours=least)})
        except OverflowError:
            return Q(pk__in=())


class OnOrAfter(AnyOf):
    """Rows whose time is this one, or on this day, or later."""

    field_class = Moments

    def condition(self, values: list[str]) -> Q:
        return Q(**{f"{self.field_name}__gte": datetime.fromisoformat(min(values)).replace(tzinfo=UTC)})


class Changed(AnyOf):
    """Rows of which something became known since then, whenever it happened."""

    field_class = Moments

    def condition(self, values: list[str]) -> Q:
        moment = datetime.fromisoformat(min(values)).replace(tzinfo=UTC)
        return Q(pk__in=Event.objects.filter(recorded_at__gte=moment).values("report"))


class ContainsWords(AnyOf):
    """Rows that contain all the words; negated, rows that contain none of them."""

    field_class = SearchedWords

    def condition(self, values: list[str]) -> Q:
        condition = Q()
        for word in dict.fromkeys(" ".join(values).lower().split()):
            condition = condition | Q(words__contains=word) if self.exclude else condition & Q(words__contains=word)
        return condition


class Flag(OneOf):
    """A single value such as `yes`: rows whose column is true, or not empty."""

    def condition(self, values: list[str]) -> Q:
        is_boolean = Report._meta.get_field(self.field_name).get_internal_type() == "BooleanField"
        return Q(**{self.field_name: True}) if is_boolean else ~Q(**{self.field_name: ""})


class Assigned(AnyOf):
    """Rows by assignee; `nobody` for unassigned ones."""

    def condition(self, values: list[str]) -> Q:
        return Q(assignee__in=["" if value == "nobody" else clipped(value) for value in values])


class Tagged(AnyOf):
    """Rows that have one of these tags."""

    def condition(self, values: list[str]) -> Q:
        condition = Q()
        for value in values:
            condition |= Q(tags__contains=f" {value.strip().lower()} ")
        return condition


# To add a filter: `AnyOf` for a column of names, which are stored cut (FILTER_COLUMNS of tracker/models/reports.py);
# `OneOf` for a fixed set; `Flag` for yes or no; else, as for a text that is not cut, a class with its own `condition`.
# Its name in NAMES if it is free text and named like its column, so that typos are found. Its counts come from COUNTED
# and its place in the form from OFFERED, both in table.py. The API takes it as it is; to document it there:
# `_PARAMETERS` of tracker/api/requests.py, and `@_list("/reports", …)` of tracker/api/tables.py. For the search box:
# TEXTS or CHOICES of tracker/domain/search.py, and `_CONDITIONS` of tracker/pages/search.py.
_POSITIVE: dict[str, Any] = {
    "state": InStates(known=STATES),
    "kind": OneOf(field_name="verdict", known=[verdict.value for verdict in Verdict]),
    "awaiting": OneOf(field_name="awaited", known=[awaited.value for awaited in Awaited]),
    "subsystem": AnyOf(field_name="subsystem"),
    "suite": AnyOf(field_name="suite"),
    "metric": AnyOf(field_name="metric"),
    "machine": AnyOf(field_name="machine"),
    "author": ByAuthor(field_name="author"),
    "assigned": Assigned(),
    "tag": Tagged(),
    "reported_by": OneOf(field_name="reported_by", known=[by.value for by in ReportedBy]),
    "blocking": Flag(field_name="blocks", known=["yes"]),
    "stable": Flag(field_name="lacks_fix", known=["missing"]),
    "age": Since(field_name="reported_at"),
    "silence": Since(field_name="last_human_reply_at"),
    "reported_after": OnOrAfter(field_name="reported_at"),
    "closed_after": OnOrAfter(field_name="closed_at"),
    "changed_after": Changed(),
    "q": ContainsWords(),
}
FLAGS = {
    name: query_filter.extra["known"][0] for name, query_filter in _POSITIVE.items() if isinstance(query_filter, Flag)
}
NAMES = ("subsystem", "suite", "metric", "machine", "author")  # free text: checked for typos
IMPROVEMENTS = "improvements"


class TableFilters(django_filters.FilterSet):
    """All filters, each with its negation."""

    def __init__(self, data: QueryDict, now: datetime) -> None:
        super().__init__(data, queryset=Report.objects.none())
        self.now = now

    @classmethod
    def get_filters(cls) -> dict[str, Any]:
        switch = OneOf(known=["on", "off"])  # "off" where a page shows them unless told otherwise
        negative = {
            f"{name}{NOT}": type(positive)(field_name=positive.field_name, exclude=True, **positive.extra)
            for name, positive in _POSITIVE.items()
        }
        return {**_POSITIVE, **negative, IMPROVEMENTS: switch}

    def filter_queryset(self, queryset: QuerySet[Report]) -> QuerySet[Report]:
        """Return the matching rows. Improvements need no action, so they are included only on request."""
        values = dict(self.form.cleaned_data)
        asked = "on" in values.pop(IMPROVEMENTS) or State.NO_ACTION in values["state"]  # which only these have
        shown = asked or values["kind"] or values[f"kind{NOT}"]
        for name, value in values.items():
            queryset = self.filters[name].filter(queryset, value)
        return queryset if shown else queryset.exclude(verdict=Verdict.IMPROVEMENT)


# --- The query ---

PK = Key("pk")
URGENT = (Key("urgency", descending=True), PK)
# The orders of a table; the first is the default.
ORDERS: Mapping[str, tuple[Key, ...]] = {
    "urgency": URGENT,
    "effect": (Key("weight", descending=True), PK),
    "silence": (Key("last_human_reply_at", nullable=True), PK),
    "oldest": (Key("reported_at", nullable=True), PK),
    "newest": (Key("reported_at", descending=True, nullable=True), Key("pk", descending=True)),
    **{name: (Key(name), *URGENT) for name in ("subsystem", "metric", "machine", "author", "state")},
}
GROUPS = ("state", "subsystem", "suite", "machine", "author")
POSITIONS = ("after", "before", "end")


class ReleaseSection(NamedTuple):
    """A part of a release's table: the column that names the release, its heading, its name in exports."""

    column: str
    heading: str
    exported: str


SECTIONS = {
    "merged": ReleaseSection("merged_release", "Merged in this release", "merged"),
    "shifted": ReleaseSection(
        "shift_left_release",
        "Reported in this cycle: other trees, people, version not known",
        "shift_left",
    ),
}


class InvalidQuery(InvalidInput):
    """The query string is invalid; the message names each parameter and what was expected: "state: expected …; …"."""

    @property
    def names(self) -> set[str]:
        """The parameters that are wrong."""
        return {part.partition(":")[0].strip("'\"") for part in str(self).split("; ")}


@dataclass(frozen=True, slots=True)
class TriageQuery:
    """A parsed query. `position` holds one of `after` or `before`, a cursor, or `end` for the last page."""

    filters: TableFilters
    active_filters: Mapping[str, tuple[str, ...]]
    order: str = "urgency"
    group: str = ""
    section: str = ""
    position: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_query(cls, query: QueryDict, now: datetime) -> TriageQuery:
        """Parse a query string; raise InvalidQuery for an unknown parameter or value."""
        own = ("order", "group", "section", *POSITIONS)
        filters = TableFilters(query, now)
        for name in query:
            if name not in own and name not in filters.filters:
                raise InvalidQuery(
                    f"{name[:40]!r}: there is no such filter; expected one of {', '.join(filters.filters)}"
                )
        if filters.errors:
            lines = [f"{name}: {error}" for name, errors in filters.errors.items() for error in errors]
            raise InvalidQuery("; ".join(lines))
        active = {name: tuple(value) for name, value in filters.form.cleaned_data.items() if value}
        order = _one(query, "order", tuple(ORDERS)) or "urgency"
        position = {name: str(query[name]) for name in POSITIONS if query.get(name)}
        section = _one(query, "section", tuple(SECTIONS))
        if position and not section:
            raise InvalidQuery(f"section: expected one of {', '.join(SECTIONS)} together with {', '.join(position)}")
        triage_query = cls(filters, active, order, _one(query, "group", GROUPS), section, position)
        triage_query.cursor()  # an invalid cursor is reported before any query is made
        return triage_query

    @property
    def keys(self) -> Order:
        """The columns to order by: the group first."""
        keys = ORDERS[self.order]
        group = (Key(self.group),) if self.group and self.group != keys[0].name else ()
        return Order((*group, *keys))

    def cursor(self) -> list[Any] | None:
        """Return the values after which the page starts; None for the first or last page."""
        text = self.position.get("after") or self.position.get("before") or ""
        try:
            return self.keys.values(text, Report) if text else None
        except CursorError:
            name = "after" if self.position.get("after") else "before"
            raise InvalidQuery(f"{name}: expected a cursor of this table; found {text[:40]!r}") from None

    @property
    def backwards(self) -> bool:
        return "after" not in self.position and bool(self.position)

    def filtered(self, rows: QuerySet[Report]) -> QuerySet[Report]:
        return self.filters.filter_queryset(rows)

    @property
    def text(self) -> str:
        """The query string without the page, as a saved view stores it."""
        return self.url()[1:]

    @property
    def ordered(self) -> dict[str, str]:
        """The query string of this table in each order."""
        return {order: self.url(order=order if order != "urgency" else "") for order in ORDERS}

    def url(self, **changes: str) -> str:
        """Return the query string, with its question mark, with some parameters changed."""
        own = {"order": self.order if self.order != "urgency" else "", "group": self.group, **changes}
        pairs = [(name, value) for name, values in self.active_filters.items() for value in values]
        return "?" + urlencode([*pairs, *((name, value) for name, value in own.items() if value)], safe="!")


def _one(query: QueryDict, name: str, choices: tuple[str, ...]) -> str:
    value = query.get(name, "")
    if value and value not in choices:
        raise InvalidQuery(f"{name}: expected one of {', '.join(choices)}; found {value[:40]!r}")
    return value


# --- Presets ---


@dataclass(frozen=True, slots=True)
class Preset:
    """A named query; `is_current`: the page shows it already."""

    name: str
    url: str
    is_current: bool


def presets(
    current: str, release: Release, user: str, address: str, visited: datetime | None, now: datetime
) -> list[Preset]:
    """Return the links for a release, which comes with the number and the time of its newest -rc (`candidate`,
    `candidate_at`). `current`: the page's query; `user`: who is signed in; `address`: theirs, if a report is about a
    commit of theirs; `visited`: when they last looked at tables before this visit.
    """
    queries = [
        ("Open", "state=open"),
        ("Unanswered", "state=no_response"),
        ("Fix proposed", "state=fix_proposed&state=fix_confirmed"),
        ("Fix queued", "state=fix_queued"),
        ("Blocking", "state=open&blocking=yes"),
        ("By people", "reported_by=person"),
        ("Fix missing in stable", "stable=missing"),
    ]
    if user:
        queries.append(("Assigned to me", urlencode({"assigned": user})))
    if address:
        queries.append(("My commits", urlencode({"author": address})))
    if visited:
        queries.append(("Changed since my last visit", urlencode({"changed_after": f"{visited:%Y-%m-%dT%H:%M}"})))
    monday = now.date() - timedelta(days=now.weekday())
    queries.append(("Changed since Monday", f"changed_after={monday}"))
    number, at = release.candidate, release.candidate_at  # type: ignore[attr-defined]
    if number and at:
        # The next whole minute: what the candidate itself brought is dated a moment after its tag
        since = f"{at + timedelta(minutes=1):%Y-%m-%dT%H:%M}"
        queries.append((f"Changed since -rc{number}", urlencode({"changed_after": since})))
        queries.append((f"New since -rc{number}", urlencode({"reported_after": since})))
        queries.append((f"Closed since -rc{number}", urlencode({"closed_after": since})))
    return [Preset(name, f"?{query}", query == current) for name, query in queries]
