"""Listings side by side as one table: a column each, and the changes against the first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.documents.blocks import DocumentLink, TableBlock
from tracker.domain.tool_output.diff import CellState, Diff, DiffRow


@dataclass(frozen=True, slots=True)
class Beside:
    """Files of one kind: `labels` name the sides, `files` link to them, `where`: where all were taken."""

    kind: str
    where: str
    labels: tuple[str, ...]
    files: tuple[DocumentLink, ...]
    diff: Diff


def table(each: Beside) -> TableBlock:
    """Return the table: name, value on each side, changes; if the tool has several columns, all sides in one cell."""
    caption = f"{each.kind} of {' and '.join(each.labels)}"
    found = each.diff
    if not found.is_share and len(found.columns) > 1:
        rows = [[_name(row), *map(_in_a_cell, row.cells)] for row in found.rows]
        return TableBlock(caption, ("Name", *found.columns), rows, frozenset(range(1, len(found.columns) + 1)))
    unit = ", %" if found.is_share else ""
    columns = ("Function" if found.is_share else "Name", *(f"{label}{unit}" for label in each.labels))
    columns += _changes(each.labels[1:], "points" if found.is_share else "%")
    at = found.columns.index("share") if found.is_share else 0
    rows = [[_name(row), *_in_columns(row.cells[at], found.is_share)] for row in found.rows]
    return TableBlock(caption, columns, rows, frozenset(range(1, len(columns))))


def _changes(labels: Sequence[str], unit: str) -> tuple[str, ...]:
    return (f"Change, {unit}",) if len(labels) == 1 else tuple(f"{label}, {unit} more" for label in labels)


def _name(row: DiffRow) -> str:
    return f"{row.name} ({row.note})" if row.note and not row.note.startswith("[") else row.name


def _in_columns(cell: CellState, is_share: bool) -> list[str]:
    values = ["–" if value is None else format_value(value) for value in cell.values]
    digits = 2 if is_share else 1
    return values + ["–" if change is None else f"{change:+.{digits}f}" for change in cell.changes]


def _in_a_cell(cell: CellState) -> str:
    shown = ["–" if value is None else format_value(value) for value in cell.values]
    if len(set(shown)) == 1:
        return shown[0]
    change = cell.changes[-1]
    return " → ".join(shown) + ("" if change is None else f" ({change:+.1f} %)")


def format_value(value: float) -> str:
    """Return a measured value with four significant digits, or all those before the decimal point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
