"""`perf report --stdio`: functions by their share of the samples (tools/perf/Documentation/perf-report.txt).

With call graphs, only the functions' own lines are read; with several events, only the first one's. Where perf tells
Children and Self, Self counts: the shares of functions then add up to a hundred.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.evidence.listing import Listing, Row, number, summed

NAME = "perf report"
_HEADING = re.compile(r"^#\s*(?:Children\s+Self|Overhead)\b.*\bSymbol\b", re.M)
_EVENT = re.compile(r"^# Samples: \S+ +of events? '([^'\n]{1,100})'", re.M)
# Shares, some columns, then the kind of the symbol: [k] in the kernel, [.] in user space, [g] [u] [H] in guests.
_LINE = re.compile(r"^ {0,20}(\d{1,3}\.\d+)%(?: +(\d{1,3}\.\d+)%)? +(.*?)\[([kgu.H])\] +(\S.*?) *$")


def claims(head: str) -> bool:
    return bool(_HEADING.search(head))


def parse(text: str) -> Listing:
    events = _EVENT.findall(text)
    title = events[0] if events else "samples"
    if len(events) > 1:
        title += f", the first of {len(events)} events"
    return Listing(title, ("share",), summed(_rows(text)), is_share=True)


def _rows(text: str) -> Iterator[Row]:
    headings = 0
    for line in text.splitlines():
        if line.startswith("#"):
            headings += bool(_HEADING.match(line))
            if headings > 1:
                return
        elif (found := _LINE.match(line[:1000])) and "--" not in found[3]:
            share = number(found[2] or found[1])
            words = found[3].split()
            yield Row(found[5], (share,), words[-1] if words else "")
