"""Two listings of one kind side by side: what was before and after, and the change of each name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.evidence.listing import Listing, Row
from tracker.movement import change_pct

TOP = 30  # functions, as profiles in mail have them


@dataclass(frozen=True, slots=True)
class Place:
    """One column of one name before and after. `change`: in points of shares, else in per cent of the old value."""

    old: float | None
    new: float | None
    change: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One name on both sides, a place a column."""

    name: str
    note: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """`left_out`: the names that are not shown, since they are small or did not change."""

    title: str
    columns: tuple[str, ...]
    pairs: tuple[Pair, ...]
    is_share: bool
    left_out: int


def diff(old: Listing, new: Listing, most: int = TOP) -> Diff:
    """Shares by the larger of both sides, everything else in the order of the tool; the `most` first of them."""
    columns = tuple(name for name in old.columns if name in new.columns)
    before, after = ({row.name: row for row in each.rows} for each in (old, new))
    names = list(dict.fromkeys([*before, *after]))
    pairs = [_pair(name, before.get(name), after.get(name), old, new, columns) for name in names]
    if old.is_share:
        pairs.sort(key=lambda pair: -max(pair.places[-1].old or 0.0, pair.places[-1].new or 0.0))
    title = old.title if old.title == new.title else f"{old.title}; {new.title}"
    return Diff(title, columns, tuple(pairs[:most]), old.is_share, max(0, len(pairs) - most))


def _pair(name: str, before: Row | None, after: Row | None, old: Listing, new: Listing, columns: Sequence[str]) -> Pair:
    told = after or before
    places = []
    for column in columns:
        a = before.values[old.columns.index(column)] if before else None
        b = after.values[new.columns.index(column)] if after else None
        places.append(Place(a, b, _change(a, b, old.is_share and column == "share")))
    return Pair(name, told.note if told else "", tuple(places))


def _change(old: float | None, new: float | None, in_points: bool) -> float | None:
    if in_points:
        return (new or 0.0) - (old or 0.0)
    return None if old is None or new is None else change_pct(old, new)
