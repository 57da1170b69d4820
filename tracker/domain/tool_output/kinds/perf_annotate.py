"""`perf annotate --stdio`: instructions by their share of the samples; those without any are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracker.domain.tool_output.listing import ListingRow, ToolListing, lines_of, number, summed

NAME = "perf annotate"
_HEADING = re.compile(r"\s{0,40}Percent\s{0,40}\|.{0,60}Disassembly of (\S{1,200})(?: for (\S{1,60}))?")
_FUNCTION = re.compile(r"<([^<>]{1,200})>:?$")
_ADDRESS = re.compile(r"[0-9a-f]{1,16}:$")
_BARS = frozenset({":", "│", "|"})


def claims(head: str) -> bool:
    return any(_HEADING.match(line) for line in lines_of(head, 400))


def parse(text: str) -> ToolListing:
    heading = next((found for line in lines_of(text, 400) if (found := _HEADING.match(line))), None)
    rows = summed(_rows(text))
    functions = list(dict.fromkeys(row.note for row in rows if row.note))
    parts = [", ".join(functions[:3]), heading[1] if heading else "", (heading[2] or "") if heading else ""]
    return ToolListing(", ".join(filter(None, parts)) or "instructions", ("share",), rows, is_share=True)


def _rows(text: str) -> Iterator[ListingRow]:
    function = ""
    for line in lines_of(text):
        words = line.split()
        if not words:
            continue
        if found := _FUNCTION.search(words[-1]):
            function = found[1] if words[0] in (*_BARS, words[-1]) or _is_hexadecimal(words[0]) else function
        share = number(words[0]) if "." in words[0] else None
        if not share or words[1:2] == [] or words[1] not in _BARS:
            continue
        rest = words[3:] if len(words) > 3 and _ADDRESS.match(words[2]) else words[2:]
        if rest:
            yield ListingRow(" ".join(rest), (share,), function)


def _is_hexadecimal(word: str) -> bool:
    return len(word) >= 8 and set(word) <= set("0123456789abcdef")
