"""A query on a table, read from and written to a URL: filters, order, grouping and page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from tracker.models import Report
from tracker.pages.paging import CursorError, Key, Order
from tracker.pages.triage.filters import TableFilters

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
SECTIONS = {"merged": "merged_release", "shifted": "shift_left_release"}  # and the column that names the release
POSITIONS = ("after", "before", "end")


class InvalidQuery(ValueError):
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
        if errors := filters.error_messages():
            raise InvalidQuery("; ".join(errors))
        order = _one(query, "order", tuple(ORDERS)) or "urgency"
        position = {name: str(query[name]) for name in POSITIONS if query.get(name)}
        section = _one(query, "section", tuple(SECTIONS))
        if position and not section:
            raise InvalidQuery(f"section: expected one of {', '.join(SECTIONS)} together with {', '.join(position)}")
        found = cls(filters, filters.active(), order, _one(query, "group", GROUPS), section, position)
        found.cursor()  # an invalid cursor is reported before any query is made
        return found

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


def _one(query: QueryDict, name: str, known: tuple[str, ...]) -> str:
    found = query.get(name, "")
    if found and found not in known:
        raise InvalidQuery(f"{name}: expected one of {', '.join(known)}; found {found[:40]!r}")
    return found
