"""The comparison table of a robot's report: the axes above it, the two commits, and its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_HEADS = re.compile(r"\s*([0-9a-f]{7,16}|v\d\S{0,14})\s+([0-9a-f]{7,27}|v\d\S{0,26})\s*\Z")
_RULE = re.compile(r"-{16} -{27}\s*\Z")
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|nan|inf)"
_ROW = re.compile(
    rf"\s*(?P<old>{_NUMBER})\s*(?:±\s*(?P<oldsd>\d+)%)?"
    rf"\s+(?P<change>[-+]\d[\d.e+]*%?)"
    rf"\s+(?P<new>{_NUMBER})\s*(?:±\s*(?P<newsd>\d+)%)?\s+(?P<name>\S.*?)\s*\Z"
)


@dataclass(frozen=True, slots=True)
class Value:
    """One side of a row: its mean, and its standard deviation in per cent (0: too small to be printed)."""

    mean: float
    stddev_pct: float


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: the old value, the change as printed ("-37.9%", "+0.2"), the new value."""

    name: str
    old: Value
    change: str
    new: Value


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its axes by name, and the parent as its head names it (16 digits or a tag)."""

    axes: tuple[tuple[str, str], ...]
    parent: str
    first_line: int  # of the rows, in the lines of the mail
    last_line: int

    def axis(self, name: str) -> str:
        return dict(self.axes).get(name, "")


def find_tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables of a mail. Each begins at the rule below its two heads, and ends before the next one."""
    starts = [n for n, line in enumerate(lines) if _RULE.match(line) and n and _HEADS.match(lines[n - 1])]
    for start, end in pairwise([*starts, len(lines)]):
        heads = _HEADS.match(lines[start - 1])
        assert heads
        yield Table(_axes(lines, start), heads[1], start + 1, end)


def _axes(lines: Sequence[str], start: int) -> tuple[tuple[str, str], ...]:
    """The line of axis names and the line of values, some lines above a table."""
    for number in range(start, max(-1, start - 14), -1):
        if lines[number].startswith("====") and number + 2 < len(lines):
            names = lines[number + 1].strip().rstrip(":").split("/")
            values = lines[number + 2].strip().split("/")
            if len(names) == len(values):
                return tuple(zip(names, values, strict=True))
            return ()
    return ()


def find_row(lines: Sequence[str], table: Table, metric: str) -> Row | None:
    """The row of one metric, or None."""
    for line in lines[table.first_line : table.last_line]:
        if metric in line and (row := parse_row(line)) and row.name == metric:
            return row
    return None


def parse_row(line: str) -> Row | None:
    """One row of a table, or None for any other line."""
    found = _ROW.match(line[:400])
    if not found:
        return None
    try:
        old = Value(float(found["old"]), float(found["oldsd"] or 0))
        new = Value(float(found["new"]), float(found["newsd"] or 0))
    except ValueError:
        return None
    return Row(found["name"], old, found["change"], new)
