"""Changing the basket: all rows at once, each validated, and logged in its history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from tracker.domain import versions
from tracker.domain.errors import InvalidInput
from tracker.domain.performance_index.basket import params_text, read_params
from tracker.models import BasketEntry, Metric, TextRevision
from tracker.pages.index.queries import BASKET, entries
from tracker.services import revisions

MOST = 150  # benchmarks: five fields each, and a form may have a thousand
DOCUMENT_KEY, CHANGES = f"basket {BASKET}", "changes"


@dataclass(frozen=True, slots=True)
class BasketRow:
    """A row of the form, as text. A row without a metric is removed."""

    metric: str
    params: str = ""
    weight: str = "1"
    since: str = ""
    until: str = ""

    @property
    def label(self) -> str:
        name = f"{self.metric} ({self.params})" if self.params else self.metric
        span = "".join(f", {word} {each}" for word, each in (("since", self.since), ("until", self.until)) if each)
        return f"{name} × {self.weight}{span}"


def rows() -> list[BasketRow]:
    """Return the current basket."""
    return [
        BasketRow(each.metric, params_text(each.params), f"{each.weight:g}", each.since, each.until)
        for each in entries()
    ]


def newest() -> int:
    """Return the key of the newest change, 0 if there was none."""
    return (
        TextRevision.objects.filter(place=DOCUMENT_KEY, name=CHANGES)
        .order_by("-pk")
        .values_list("pk", flat=True)
        .first()
        or 0
    )


@transaction.atomic
def change(new_rows: list[BasketRow], by: str, now: datetime, seen: int) -> str:
    """Replace the basket. Returns a description of the changes, "" for none. Raises InvalidInput for the first bad row.

    `seen`: the newest change when the form was loaded; if there is a newer one, nothing is changed.
    """
    if newest() != seen:
        raise InvalidInput("the basket was changed in the meantime: reload the page and try again")
    before = rows()
    checked = {number: _checked(row, number) for number, row in enumerate(new_rows, 1) if row.metric}
    kept = list(checked.values())
    known: set[tuple[str, str, str]] = set()
    for number, row in checked.items():
        key = (row.metric, row.params, row.since)
        if key in known:
            raise InvalidInput(f"row {number}: {row.label} is listed twice")
        known.add(key)
    metrics = Metric.objects.in_bulk({row.metric for row in kept}, field_name="name")
    if unknown := [row.metric for row in kept if row.metric not in metrics]:
        raise InvalidInput(f"metric: there are no measurements of {unknown[0][:80]!r}")
    changes = _changes(before, kept)
    if changes:
        BasketEntry.objects.filter(basket=BASKET).delete()
        BasketEntry.objects.bulk_create(
            BasketEntry(
                basket=BASKET,
                metric=metrics[row.metric],
                params=row.params,
                weight=float(row.weight),
                since=row.since,
                until=row.until,
            )
            for row in kept
        )
        revisions.write(DOCUMENT_KEY, CHANGES, changes[: revisions.LONGEST], by, now)
    return changes


def _checked(row: BasketRow, number: int) -> BasketRow:
    """Return the row in its normal form."""
    try:
        params = params_text(read_params(row.params))
        weight = float(row.weight or "1")
    except ValueError as error:
        raise InvalidInput(f"row {number}: {error}") from None
    if not (math.isfinite(weight) and 0 <= weight <= 1e6):
        raise InvalidInput(f"row {number}: expected a weight from 0 to a million, found {row.weight[:20]!r}")
    for name, value in (("since", row.since), ("until", row.until)):
        if value and versions.parse(value) is None:
            raise InvalidInput(f"row {number}: {name}: expected a version like v6.12, found {value[:40]!r}")
    return BasketRow(row.metric, params, f"{weight:g}", row.since, row.until)


def _changes(before: list[BasketRow], after: list[BasketRow]) -> str:
    gone = [f"- {row.label}" for row in before if row not in after]
    new = [f"+ {row.label}" for row in after if row not in before]
    return "; ".join([*gone, *new])
