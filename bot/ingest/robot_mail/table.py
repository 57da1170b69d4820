"""The comparison table of a robot's report: the axes above it, the two commits, and its rows."""

from __future__ import annotations

import math
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
    """One side of a row: its mean, and its standard deviation in per cent (None: below 2 %, and so not printed)."""

    mean: float
    stddev_pct: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: the old value, the change as printed ("-37.9%", "+0.2"), the new value."""

    name: str
    old: Value
    change: str
    new: Value

    @property
    def change_pct(self) -> float | None:
        """The printed change, where it is in per cent; changes of shares are printed in points."""
        try:
            change = float(self.change[:-1]) if self.change.endswith("%") else math.nan
        except ValueError:  # "+1.2.3%"
            return None
        return change if math.isfinite(change) else None


# "           :4           50%           2:4     kmsg.ACPI_Error": how often a run failed, on both sides
_FAIL = re.compile(r"\s*\d*:\d+\s+-?\d+%\s+\d*:\d+\s+\S")
_COMMIT_LINE = re.compile(r'\s{1,4}(?P<name>[0-9a-f]{7,40}|v\d\S{0,20})(?:\s+\("(?P<title>.*)"\))?\s*\Z')


@dataclass(frozen=True, slots=True)
class Side:
    """One commit of a table, as the line below `commit:` names it: a short sha or a tag, and its title."""

    name: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its axes by name, the parent as its head names it (16 digits or a tag), and both commits."""

    axes: tuple[tuple[str, str], ...]
    parent: str
    commits: tuple[Side, Side]
    machine_line: str  # "lkp-icl-2sp6: 128 threads …", above the tables of further impact
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
        yield Table(_axes(lines, start), heads[1], _commits(lines, start), _machine_line(lines, start), start + 1, end)


def _commits(lines: Sequence[str], start: int) -> tuple[Side, Side]:
    """The two lines below the nearest `commit:` above a table."""
    for number in range(start - 1, max(-1, start - 10), -1):
        if lines[number].startswith("commit:"):
            return _side(lines, number + 1), _side(lines, number + 2)
    return Side(), Side()


def _side(lines: Sequence[str], number: int) -> Side:
    found = _COMMIT_LINE.match(lines[number]) if number < len(lines) else None
    return Side(found["name"], found["title"] or "") if found else Side()


def _machine_line(lines: Sequence[str], start: int) -> str:
    """The line below a row of stars, between the table before and the axes."""
    for number in range(start, max(0, start - 16), -1):
        if lines[number - 1].startswith("*****"):
            return lines[number].strip()
    return ""


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


def count_rows(lines: Sequence[str], table: Table) -> tuple[int, int]:
    """How many rows a table has, and how many more tell of failed runs."""
    rows = fails = 0
    for line in lines[table.first_line : table.last_line]:
        if parse_row(line):
            rows += 1
        elif _FAIL.match(line[:400]):
            fails += 1
    return rows, fails


def find_rows(lines: Sequence[str], table: Table) -> Iterator[Row]:
    """Every row of a table."""
    return (row for line in lines[table.first_line : table.last_line] if (row := parse_row(line)))


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
        old = Value(float(found["old"]), float(found["oldsd"]) if found["oldsd"] else None)
        new = Value(float(found["new"]), float(found["newsd"]) if found["newsd"] else None)
    except ValueError:
        return None
    return Row(found["name"], old, found["change"], new)
