"""`vmstat N`: the mean of each column (man vmstat). The first line tells of the time since boot, and is left out where
others follow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from tracker.evidence.listing import Listing, Row, number

NAME = "vmstat"
_HEADING = re.compile(r"^ *r +b +(?:swpd|avm)\b.*\bcs\b.*\bus\b.*$", re.M)
_MOST = 100_000  # lines


def claims(head: str) -> bool:
    return bool(_HEADING.search(head))


def parse(text: str) -> Listing:
    names: Sequence[str] = ()
    found: list[list[float]] = []
    for line in text.splitlines()[:_MOST]:
        if _HEADING.match(line):
            names = names or line.split()
        elif names:
            values = [number(word) for word in line.split()[: len(names)]]
            if len(values) == len(names) and None not in values:
                found.append([value for value in values if value is not None])
    kept = found[1:] or found
    means = tuple(Row(name, (fmean(column),)) for name, column in zip(names, zip(*kept, strict=True), strict=False))
    left = ", the one since boot left out" if len(found) > 1 else ""
    return Listing(f"mean of {len(kept)} lines{left}", ("mean",), means)
