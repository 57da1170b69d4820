"""What each tool prints, a file a tool: NAME, `claims(text)` whether this looks like it, and `parse(text)`.

To add one: such a file, its name in KINDS, a sample in tests/tracker/evidence/, a word in docs/comparisons.md.
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

TEXT = "text"  # what no kind claims
_HEAD = 8_000  # letters that tell a kind


class ToolKind(Protocol):
    """A file of this folder."""

    NAME: str

    def claims(self, head: str) -> bool: ...
    def parse(self, text: str) -> ToolListing: ...


# The first that claims a text has it: those that print a heading of their own come before those that don't.
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
    """The name of the kind that claims a text, and finds something in it; TEXT where none does."""
    head = text[:_HEAD]
    return next((name for name, kind in KINDS.items() if kind.claims(head) and kind.parse(text).rows), TEXT)


def read(kind: str, text: str) -> ToolListing | None:
    """The text as a table; None where its kind is unknown, or nothing is found in it."""
    known = KINDS.get(kind)
    listing = known.parse(text) if known else None
    return listing if listing and listing.rows else None
