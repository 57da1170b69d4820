"""The box "the commit also has significant impact on the following tests"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

_WIDEST = 40  # letters of the first cell
_CHANGE = re.compile(
    r"(?:(?P<suite>[^:\s]{1,80}):\s+)?(?P<metric>\S{1,160})\s+(?P<percent>[-+]?\d+(?:\.\d+)?(?:e\+?\d+)?)%"
    r"\s+(?P<verdict>regression|improvement)"
)


@dataclass(frozen=True, slots=True)
class Impact:
    """One more test that changed. `change_pct`: plus is better."""

    suite: str
    metric: str
    verdict: str
    percent: str  # as written
    change_pct: float
    machine: str
    parameters: tuple[tuple[str, str], ...]


def find_impacts(lines: Sequence[str]) -> tuple[tuple[Impact, ...], tuple[str, ...]]:
    """Return the entries of the box, which `+---+` lines separate, and the text of those that can't be parsed."""
    entries: list[list[tuple[str, str]]] = [[]]
    for line in lines:
        if line.startswith("+--"):
            entries.append([])
        elif cells := _cells(line):
            entries[-1].append(cells)
    read = [(_impact(entry), entry) for entry in entries if entry and entry[0][0].startswith("testcase")]
    return (
        tuple(impact for impact, _ in read if impact),
        tuple(" ".join(value for _, value in entry) for impact, entry in read if not impact),
    )


def _cells(line: str) -> tuple[str, str] | None:
    """Return the two cells of a line of the box, the first one empty where an entry goes on; None for other lines."""
    name, bar, value = line.removeprefix("|").partition("|")
    if not line.startswith("|") or not bar or not name or len(name.strip()) > _WIDEST:
        return None
    return name.strip(), value.rstrip().removesuffix("|").strip()


def _impact(entry: Sequence[tuple[str, str]]) -> Impact | None:
    change = machine = ""
    parameters: list[tuple[str, str]] = []
    key = ""
    for name, value in entry:
        key = name or key
        if key.startswith("testcase"):
            change = f"{change} {value}".strip()
        elif key.startswith("test machine"):
            machine = f"{machine} {value}".strip()
        elif key.startswith("test parameters") and "=" in value:
            parameter, _, setting = value.partition("=")
            parameters.append((parameter.strip(), setting.strip()))
    found = _CHANGE.match(change)
    if not found or not isfinite(float(found["percent"])):
        return None
    percent = abs(float(found["percent"]))
    return Impact(
        suite=found["suite"] or found["metric"].split(".")[0],
        metric=found["metric"],
        verdict=found["verdict"],
        percent=found["percent"],
        change_pct=percent if found["verdict"] == "improvement" else -percent,
        machine=machine,
        parameters=tuple(parameters),
    )
