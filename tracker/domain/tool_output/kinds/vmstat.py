"""`vmstat N`: the mean of each column (man vmstat). The first line covers the time since boot, and is left out if
others follow. The timestamp after the last column (`-t`) is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tracker.domain.tool_output.listing import ListingRow, ToolListing, lines_of, mean_of, number

NAME = "vmstat"
_MOST = 100_000  # lines
_COLUMNS = frozenset(
    (
        *("r", "b", "swpd", "free", "inact", "active", "buff", "cache"),
        *("si", "so", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st", "gu"),
    )
)


def claims(head: str) -> bool:
    return any(_names(line) for line in lines_of(head, 300))


def _names(line: str) -> Sequence[str]:
    """Return the columns that a heading names; () if it is not a heading."""
    words = line.split()
    known = [word for word in words if word in _COLUMNS]
    return known if words[:3] == ["r", "b", "swpd"] and len(set(known)) == len(known) >= 12 else ()


def parse(text: str) -> ToolListing:
    names: Sequence[str] = ()
    found: list[list[float]] = []
    for line in islice(lines_of(text, 400), _MOST):
        if heading := _names(line):
            names = names or heading
        elif names:
            values = [number(word) for word in line.split()[: len(names)]]
            if len(values) == len(names) and None not in values:
                found.append([value for value in values if value is not None])
    kept = found[1:] or found
    means = tuple(
        ListingRow(name, (mean_of(column),)) for name, column in zip(names, zip(*kept, strict=True), strict=False)
    )
    left = ", the one since boot left out" if len(found) > 1 else ""
    return ToolListing(f"mean of {len(kept)} lines{left}", ("mean",), means)
