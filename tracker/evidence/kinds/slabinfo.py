"""`slabinfo -AD`: the caches of SLUB by their activity (tools/mm/slabinfo.c). %Fast is of allocation and of free."""

from __future__ import annotations

import re

from tracker.evidence.listing import MOST_ROWS, Listing, Row, number

NAME = "slabinfo -AD"
_HEADING = re.compile(r"^Name +Objects +Alloc +Free +%Fast\b.*$", re.M)


def claims(head: str) -> bool:
    return bool(_HEADING.search(head))


def parse(text: str) -> Listing:
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    for line in text.splitlines():
        if _HEADING.match(line):
            columns = tuple(name for word in line.split()[1:] for name in _columns(word))
        elif columns and len(rows) < MOST_ROWS:
            name, *words = line[:1000].split() or [""]
            values = [number(word) for word in words]
            if name and 4 <= len(values) <= len(columns) and None not in values:
                rows.append(Row(name, (*values, *[None] * (len(columns) - len(values)))))
    return Listing("caches", columns, tuple(rows))


def _columns(word: str) -> tuple[str, ...]:
    return ("%Fast alloc", "%Fast free") if word == "%Fast" else (word,)
