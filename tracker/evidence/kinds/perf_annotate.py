"""`perf annotate --stdio`: the instructions of a function by their share of its samples; those without any left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.evidence.listing import Listing, Row, number, summed

NAME = "perf annotate"
_HEADING = re.compile(r"^\s*Percent\s*\|.*?(?:Source code & )?Disassembly of (\S{1,200})(?:.*? for (\S{1,60}))?", re.M)
_LINE = re.compile(r"^\s*(\d{1,3}\.\d+)\s+(?::|│|\|)\s*(?:([0-9a-f]{1,16}):)?\s*(\S.*?)\s*$")
_FUNCTION = re.compile(r"^[ \t]*:?[ \t]*(?:\d+[ \t]+)?(?:[0-9a-f]{8,16} )?<([^>\n]{1,200})>:?$", re.M)


def claims(head: str) -> bool:
    return bool(_HEADING.search(head))


def parse(text: str) -> Listing:
    heading, function = _HEADING.search(text), _FUNCTION.search(text)
    words = [function[1] if function else "", heading[1] if heading else "", (heading[2] or "") if heading else ""]
    return Listing(", ".join(filter(None, words)) or "instructions", ("share",), summed(_rows(text)), is_share=True)


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        if found := _LINE.match(line[:1000]):
            share = number(found[1])
            if share:
                yield Row(" ".join(found[3].split()), (share,))
