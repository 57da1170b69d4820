"""`perf report --stdio`: functions by their share of the samples (tools/perf/Documentation/perf-report.txt).

With call graphs, only the functions' own lines are read; with several events, only the first one. If perf prints
Children and Self, Self is used: the shares of functions then add up to 100%.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.domain.tool_output.listing import ListingRow, ToolListing, lines_of, number, summed

NAME = "perf report"
_EVENT = re.compile(r"# Samples: \S{1,20} +of events? '([^']{1,100})'")
# The marks before a symbol: kernel, user space, guests.
_SYMBOL_MARKS = frozenset({"[k]", "[.]", "[g]", "[u]", "[H]"})


def claims(head: str) -> bool:
    return any(map(_is_heading, lines_of(head, 300)))


def _is_heading(line: str) -> bool:
    words = line.removeprefix("#").split()
    return line.startswith("#") and words[:1] in (["Children"], ["Overhead"]) and "Symbol" in words


def parse(text: str) -> ToolListing:
    events = [found[1] for line in lines_of(text, 300) if (found := _EVENT.match(line))]
    title = events[0] if events else "samples"
    if len(events) > 1:
        title += f", the first of {len(events)} events"
    return ToolListing(title, ("share",), summed(_rows(text)), is_share=True)


def _rows(text: str) -> Iterator[ListingRow]:
    headings, has_self = 0, False
    for line in lines_of(text):
        if line.startswith("#"):
            headings += _is_heading(line)
            has_self = has_self or (_is_heading(line) and "Self" in line)
            if headings > 1:
                return
            continue
        words = line.split()
        at = next((index for index, word in enumerate(words) if word in _SYMBOL_MARKS), 0)
        if at < 1 or at + 1 >= len(words) or not words[0].endswith("%") or "--" in "".join(words[:at]):
            continue
        own = words[1] if has_self and at > 1 and words[1].endswith("%") else words[0]
        share = number(own)
        if share is not None:
            module = words[at - 1] if not words[at - 1].endswith("%") else ""
            yield ListingRow(" ".join(words[at + 1 :]), (share,), module)
