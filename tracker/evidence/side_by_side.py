"""Two listings as one table of a document: before, after, and the change. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tracker.document.blocks import Table
from tracker.evidence.diff import Diff, Pair, Place


@dataclass(frozen=True, slots=True)
class Beside:
    """A file of one side beside one of another, named `old` and `new`; `where` both were taken."""

    kind: str
    where: str
    old: str
    new: str
    diff: Diff


def table(each: Beside) -> Table:
    """Two listings as one table: name, before, after, change; of several columns each in one cell."""
    if each.diff.is_share:
        columns = ("Function", f"{each.old}, %", f"{each.new}, %", "Change, points")
        rows = [_share_row(pair, each.diff) for pair in each.diff.pairs]
        return Table(f"{each.kind} of {each.old} and {each.new}", columns, rows, frozenset({1, 2, 3}))
    if len(each.diff.columns) == 1:
        columns = ("Name", each.old, each.new, "Change, %")
        rows = [(_name(pair), *_values(pair.places[0])) for pair in each.diff.pairs]
        return Table(f"{each.kind} of {each.old} and {each.new}", columns, rows, frozenset({1, 2, 3}))
    rows = [(_name(pair), *map(_both, pair.places)) for pair in each.diff.pairs]
    numeric = frozenset(range(1, len(each.diff.columns) + 1))
    return Table(f"{each.kind} of {each.old} and {each.new}", ("Name", *each.diff.columns), rows, numeric)


def _share_row(pair: Pair, diff: Diff) -> tuple[str, ...]:
    place = pair.places[diff.columns.index("share")]
    old, new = (f"{value:.4g}" if value is not None else "–" for value in (place.old, place.new))
    return (pair.name, old, new, f"{place.change:+.2f}" if place.change is not None else "–")


def _name(pair: Pair) -> str:
    return f"{pair.name} ({pair.note})" if pair.note else pair.name


def _values(place: Place) -> tuple[str, str, str]:
    told = ["–" if value is None else written(value) for value in (place.old, place.new)]
    return (told[0], told[1], _signed(place.change))


def _both(place: Place) -> str:
    old, new, change = _values(place)
    if place.old == place.new:
        return old
    return f"{old} → {new}" + (f" ({change} %)" if place.change is not None else "")


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


def written(value: float) -> str:
    """A measured value with four digits, or all that stand before its point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
