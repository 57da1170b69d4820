"""Listings of one kind side by side: the values of each name, and the changes against the first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.domain.statistics.change import change_pct
from tracker.domain.tool_output.listing import ToolListing

TOP = 30  # functions, as in profiles in mail
_COMPLETE_PCT = 99.0  # per cent: in a listing with less, a missing function may have been cut off


@dataclass(frozen=True, slots=True)
class CellState:
    """One column of one name: its value in each listing, and the changes of all but the first against the first, in
    percentage points for shares, otherwise in per cent; None if either is unknown. A function that is missing in a
    complete profile has a share of 0.
    """

    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One name, with a cell per column."""

    name: str
    note: str
    cells: tuple[CellState, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """`left_out`: the number of names not shown, since they are small or zero everywhere."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[DiffRow, ...]
    is_share: bool
    left_out: int


def diff(listings: Sequence[ToolListing], most: int = TOP) -> Diff:
    """Return the first `most` names: for profiles by largest share, otherwise in the order of the tool."""
    first = listings[0]
    columns = tuple(name for name in first.columns if all(name in each.columns for each in listings))
    names = list(dict.fromkeys((row.name, row.note) for each in listings for row in each.rows))
    found = _rows(listings, names, columns)
    kept = [each for each in found if any(value for cell in each.cells for value in cell.values)]
    if first.is_share and "share" in columns:
        at = columns.index("share")
        kept.sort(key=lambda each: -max(value or 0.0 for value in each.cells[at].values))
    title = "; ".join(dict.fromkeys(each.title for each in listings))
    return Diff(title, columns, tuple(kept[:most]), first.is_share, len(found) - len(kept[:most]))


def _rows(listings: Sequence[ToolListing], names: Sequence[tuple[str, str]], columns: Sequence[str]) -> list[DiffRow]:
    rows = [{(row.name, row.note): row for row in each.rows} for each in listings]
    at = [[each.columns.index(column) for column in columns] for each in listings]
    absent = [0.0 if each.is_share and _is_complete(each) else None for each in listings]
    found = []
    for name, note in names:
        matches = [known.get((name, note)) for known in rows]
        cells = []
        for number, column in enumerate(columns):
            in_points = listings[0].is_share and column == "share"
            values = tuple(
                row.values[own[number]] if row else (lack if in_points else None)
                for row, own, lack in zip(matches, at, absent, strict=True)
            )
            cells.append(CellState(values, tuple(_change(values[0], each, in_points) for each in values[1:])))
        found.append(DiffRow(name, note, tuple(cells)))
    return found


def _change(old: float | None, new: float | None, in_points: bool) -> float | None:
    if old is None or new is None:
        return None
    return new - old if in_points else change_pct(old, new)


def _is_complete(listing: ToolListing) -> bool:
    at = listing.columns.index("share")
    return sum(row.values[at] or 0.0 for row in listing.rows) >= _COMPLETE_PCT
