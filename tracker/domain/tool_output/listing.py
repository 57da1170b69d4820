"""The output of a tool, as a table of names and numbers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A function, a counter, a cache. `note`: where it belongs, such as the module of a function."""

    name: str
    values: tuple[float | None, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """`title`: what the numbers are. `is_share`: they are per cent of a whole, and changes are in percentage points."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ListingRow, ...]
    is_share: bool = False


def lines_of(text: str, most: int = 1000) -> Iterator[str]:
    """Return the lines of a text, each cut: no tool prints longer ones, and they would slow down the patterns."""
    return (line[:most] for line in text.splitlines())


def number(text: str) -> float | None:
    """Parse a finite number as tools print it: "1,234", "12.3%". Returns None for anything else."""
    try:
        value = float(text.strip().removesuffix("%").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean; None for no values, or if it is not finite."""
    try:
        mean = fmean(values) if values else math.inf
    except OverflowError:
        return None
    return mean if math.isfinite(mean) else None


def summed(rows: Iterable[ListingRow]) -> tuple[ListingRow, ...]:
    """Add up rows of the same name and note, in order of first appearance; at most MOST_ROWS."""
    found: dict[tuple[str, str], Sequence[float | None]] = {}
    for row in rows:
        key = (row.name, row.note)
        if key in found:
            found[key] = [_plus(a, b) for a, b in zip(found[key], row.values, strict=True)]
        elif len(found) < MOST_ROWS:
            found[key] = row.values
    return tuple(ListingRow(name, tuple(values), note) for (name, note), values in found.items())


def _plus(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else a + b
