"""System activity during a test: interrupts, context switches, CPU time, as version comparisons show them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracker.domain.tool_output.listing import ToolListing, mean_of

# The heading, the column of vmstat, and the corresponding LKP monitor.
COLUMNS = (
    ("Intr/s", "in", "vmstat.system.in"),
    ("CtxSw/s", "cs", "vmstat.system.cs"),
    ("us%", "us", "vmstat.cpu.us"),
    ("sys%", "sy", "vmstat.cpu.sy"),
    ("idle%", "id", "vmstat.cpu.id"),
    ("iowait%", "wa", "vmstat.cpu.wa"),
)
MONITORS = frozenset(monitor for _, _, monitor in COLUMNS)


@dataclass(frozen=True, slots=True)
class System:
    """The columns of one kernel, None where unknown."""

    values: tuple[float | None, ...]

    def __bool__(self) -> bool:
        return any(value is not None for value in self.values)


def system(monitors: Mapping[str, Sequence[float]], listings: Iterable[ToolListing]) -> System:
    """Return the mean of each column, from the measurements or else from vmstat listings."""
    printed: dict[str, list[float]] = {}
    for listing in listings:
        for row in listing.rows:
            if row.values and row.values[0] is not None:
                printed.setdefault(row.name, []).append(row.values[0])
    found = []
    for _, column, monitor in COLUMNS:
        values = monitors.get(monitor) or printed.get(column) or ()
        found.append(mean_of(values))
    return System(tuple(found))
