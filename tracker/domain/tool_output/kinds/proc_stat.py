"""`/proc/stat`: CPU time by use, in ticks; interrupts, context switches (Documentation/filesystems/proc.rst, 1.7)."""

from __future__ import annotations

from tracker.domain.tool_output.listing import ListingRow, ToolListing, number

NAME = "/proc/stat"
_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
_SINGLE = ("ctxt", "btime", "processes", "procs_running", "procs_blocked")
_SOFTIRQS = ("softirq", "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")


def claims(head: str) -> bool:
    lines = head.splitlines()[:2]
    return len(lines) == 2 and lines[0].startswith("cpu  ") and lines[1].startswith("cpu0 ")


def parse(text: str) -> ToolListing:
    rows: list[ListingRow] = []
    for line in text.splitlines():
        name, *words = line[:100_000].split() or [""]
        values = [number(word) for word in words]
        if name == "cpu":
            rows += [ListingRow(f"cpu {use}", (value,)) for use, value in zip(_CPU, values, strict=False)]
        elif name == "softirq":
            rows += [ListingRow(each, (value,)) for each, value in zip(_SOFTIRQS, values, strict=False)]
        elif (name == "intr" or name in _SINGLE) and values:
            rows.append(ListingRow(name, (values[0],)))
    return ToolListing("counters since boot", ("value",), tuple(row for row in rows if row.values[0] is not None))
