"""`/proc/interrupts` and `/proc/softirqs`: a column a CPU, added up (Documentation/filesystems/proc.rst, 1.2)."""

from __future__ import annotations

import re

from tracker.evidence.listing import MOST_ROWS, Listing, Row, number

NAME = "/proc per CPU"
_HEADING = re.compile(r"\s*CPU\d+(?:\s+CPU\d+)*\s*$")


def claims(head: str) -> bool:
    return bool(_HEADING.match(head.partition("\n")[0]))


def parse(text: str) -> Listing:
    heading, _, rest = text.partition("\n")
    cpus = len(heading.split())
    rows: list[Row] = []
    for line in rest.splitlines():
        name, colon, told = line[:200_000].partition(":")
        words = told.split(None, cpus)
        counts = [number(word) for word in words[:cpus]]
        known = [count for count in counts if count is not None]
        if colon and name.strip() and known and len(rows) < MOST_ROWS:
            note = " ".join(" ".join(words[len(known) :]).split()) if len(known) == len(counts) else ""
            rows.append(Row(name.strip(), (sum(known),), note[:200]))
    return Listing(f"sums over {cpus} CPUs", ("sum",), tuple(rows))
