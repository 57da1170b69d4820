"""`slabinfo -AD`: SLUB caches by activity (tools/mm/slabinfo.c). %Fast has two columns: allocation and free."""

from __future__ import annotations

from tracker.domain.tool_output.listing import MOST_ROWS, ListingRow, ToolListing, lines_of, number

NAME = "slabinfo -AD"


def claims(head: str) -> bool:
    return any(map(_is_heading, lines_of(head, 300)))


def _is_heading(line: str) -> bool:
    return line.split()[:5] == ["Name", "Objects", "Alloc", "Free", "%Fast"]


def parse(text: str) -> ToolListing:
    columns: tuple[str, ...] = ()
    rows: list[ListingRow] = []
    for line in lines_of(text):
        if _is_heading(line):
            columns = columns or tuple(name for word in line.split()[1:20] for name in _columns(word))
        elif columns and len(rows) < MOST_ROWS:
            name, *words = line.split() or [""]
            values = [number(word) for word in words]
            if name and 4 <= len(values) <= len(columns) and None not in values:
                rows.append(ListingRow(name, (*values, *[None] * (len(columns) - len(values)))))
    return ToolListing("caches", columns, tuple(rows))


def _columns(word: str) -> tuple[str, ...]:
    return ("%Fast alloc", "%Fast free") if word == "%Fast" else (word,)
