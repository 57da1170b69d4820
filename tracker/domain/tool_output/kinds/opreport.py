"""`opreport`, with or without `-l`: functions, or images, by their share of the samples (OProfile manual, chapter 4).

Lines hold [vma] samples % [image name] [app name] [symbol name], as their heading says; only the first event is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.domain.tool_output.listing import ListingRow, ToolListing, lines_of, number, summed

NAME = "opreport"
_COUNTED = re.compile(r"Counted (\w{1,60}) events")
_NAMES = ("image name", "app name", "symbol name")


def claims(head: str) -> bool:
    return any(map(_is_heading, lines_of(head, 300)))


def _is_heading(line: str) -> bool:
    """ "samples  %  image name …", "vma  samples  %  …", "  samples|      %|"."""
    words = line.replace("|", " ").split()
    return words[:2] == ["samples", "%"] or words[:3] == ["vma", "samples", "%"]


def parse(text: str) -> ToolListing:
    counted = next((found[1] for line in lines_of(text, 300) if (found := _COUNTED.match(line))), "samples")
    return ToolListing(counted, ("samples", "share"), summed(_rows(text)), is_share=True)


def _rows(text: str) -> Iterator[ListingRow]:
    first = events = names = 0
    for line in lines_of(text):
        if _is_heading(line):
            heading = line[:300].replace("|", " ")
            first = int(heading.split()[0] == "vma")
            events = heading.split().count("samples")
            names = max(1, sum(name in heading for name in _NAMES))
            continue
        words = line.split(None, first + 2 * events + names - 1) if events else []
        labels = words[first + 2 * events :]
        if not labels:
            continue
        samples, share = number(words[first]), number(words[first + 1])
        if samples is not None and share is not None and 0 <= share <= 100:
            yield ListingRow(labels[-1].strip(), (samples, share), labels[0] if len(labels) > 1 else "")
