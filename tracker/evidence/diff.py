"""Two listings of one kind side by side: what was before and after, and the change of each name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.evidence.listing import Listing, Row
from tracker.movement import change_pct

TOP = 30  # functions, as profiles in mail have them
_WHOLE = 99.0  # per cent: of a listing with less, a function that is missing may only be cut off


@dataclass(frozen=True, slots=True)
class Place:
    """One column of one name before and after. `change`: in points of shares, else in per cent of the old value; None
    where one of both is not told. A function that a whole profile does not name has a share of 0.
    """

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
    wholes = [each.is_share and _is_whole(each) for each in (old, new)]
    before, after = ({row.name: row for row in each.rows} for each in (old, new))
    names = list(dict.fromkeys([*before, *after]))
    pairs = [_pair(name, (before.get(name), after.get(name)), (old, new), wholes, columns) for name in names]
    if old.is_share:
        pairs.sort(key=lambda pair: -max(pair.places[-1].old or 0.0, pair.places[-1].new or 0.0))
    title = old.title if old.title == new.title else f"{old.title}; {new.title}"
    return Diff(title, columns, tuple(pairs[:most]), old.is_share, max(0, len(pairs) - most))


def _pair(
    name: str,
    rows: tuple[Row | None, Row | None],
    listings: tuple[Listing, Listing],
    wholes: Sequence[bool],
    columns: Sequence[str],
) -> Pair:
    told = rows[1] or rows[0]
    places = []
    for column in columns:
        in_points = listings[0].is_share and column == "share"
        values = []
        for row, listing, whole in zip(rows, listings, wholes, strict=True):
            absent = 0.0 if in_points and whole else None
            values.append(row.values[listing.columns.index(column)] if row else absent)
        places.append(Place(values[0], values[1], _change(values[0], values[1], in_points)))
    return Pair(name, told.note if told else "", tuple(places))


def _change(old: float | None, new: float | None, in_points: bool) -> float | None:
    if old is None or new is None:
        return None
    return new - old if in_points else change_pct(old, new)


def _is_whole(listing: Listing) -> bool:
    return sum(row.values[listing.columns.index("share")] or 0.0 for row in listing.rows) >= _WHOLE
