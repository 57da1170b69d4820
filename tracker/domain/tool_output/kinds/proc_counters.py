"""`/proc/vmstat`, `/proc/meminfo` and the like: a name and a number per line, optionally with a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.domain.tool_output.listing import ListingRow, ToolListing, number, summed

NAME = "/proc counters"
_LINE = re.compile(r"^([A-Za-z][\w():.-]{0,80}?):?[ \t]+(-?\d{1,20})(?: (kB))?[ \t]*$")
_ENOUGH = 0.9  # of the lines: prose is not a listing


def claims(head: str) -> bool:
    lines = [line for line in head.splitlines()[:50] if line.strip()]
    return len(lines) >= 3 and sum(bool(_LINE.match(line)) for line in lines[:-1]) >= _ENOUGH * (len(lines) - 1)


def parse(text: str) -> ToolListing:
    return ToolListing("counters", ("value",), summed(_rows(text)))


def _rows(text: str) -> Iterator[ListingRow]:
    for line in text.splitlines():
        if found := _LINE.match(line[:300]):
            yield ListingRow(found[1].rstrip(":"), (number(found[2]),), found[3] or "")
