"""Parsers for the output of tools, a module each: NAME, `claims(head)` (whether it looks like this), `parse(text)`.

To add one: such a module, its name in KINDS, a sample in tests/tracker/evidence/, a line in docs/comparisons.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tracker.domain.tool_output.kinds import (
    opreport,
    perf_annotate,
    perf_report,
    proc_counters,
    proc_per_cpu,
    proc_stat,
    slabinfo,
    vmstat,
)
from tracker.domain.tool_output.listing import ToolListing

TEXT = "text"  # anything that no kind claims
_HEAD = 8_000  # characters that decide on the kind


class ToolKind(Protocol):
    """A module of this package."""

    NAME: str

    def claims(self, head: str) -> bool: ...
    def parse(self, text: str) -> ToolListing: ...


# The first that claims a text gets it: tools that print a distinctive heading come before those that don't.
KINDS: Mapping[str, ToolKind] = {
    kind.NAME: kind
    for kind in (
        perf_report,
        perf_annotate,
        opreport,
        slabinfo,
        vmstat,
        proc_stat,
        proc_per_cpu,
        proc_counters,
    )
}


def kind_of(text: str) -> str:
    """Return the name of the kind that claims a text and finds something in it; TEXT if none does."""
    head = text[:_HEAD]
    return next((name for name, kind in KINDS.items() if kind.claims(head) and kind.parse(text).rows), TEXT)


def read(kind: str, text: str) -> ToolListing | None:
    """Return the text as a table; None if its kind is unknown or nothing is found in it."""
    known = KINDS.get(kind)
    listing = known.parse(text) if known else None
    return listing if listing and listing.rows else None
