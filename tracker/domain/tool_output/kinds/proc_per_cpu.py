"""`/proc/interrupts` and `/proc/softirqs`: one column per CPU, added up (Documentation/filesystems/proc.rst, 1.2)."""

from __future__ import annotations

import re

from tracker.domain.tool_output.listing import MOST_ROWS, ListingRow, ToolListing, number

NAME = "/proc per CPU"
_MOST_CPUS = 20_000
_CPU = re.compile(r"CPU\d{1,5}$")


def claims(head: str) -> bool:
    words = head.partition("\n")[0].split()
    return bool(words) and all(map(_CPU.match, words[:-1] or words))  # with many CPUs, the last one is cut off


def parse(text: str) -> ToolListing:
    heading, _, rest = text.partition("\n")
    cpus = min(len(heading.split()), _MOST_CPUS)
    rows: list[ListingRow] = []
    for line in rest.splitlines():
        name, colon, fields = line[:200_000].partition(":")
        words = fields.split(None, cpus)
        counts = [number(word) for word in words[:cpus]]
        known = [count for count in counts if count is not None]
        if colon and name.strip() and known and len(rows) < MOST_ROWS:
            note = " ".join(" ".join(words[len(known) :]).split()) if len(known) == len(counts) else ""
            rows.append(ListingRow(name.strip(), (sum(known),), note[:200]))
    return ToolListing(f"sums over {cpus} CPUs", ("sum",), tuple(rows))
