"""The box "the commit also has significant impact on the following tests"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(r"\|\s?(.{1,40}?)\s*\|\s?(.*?)\s*\|?\s*\Z")
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
        elif found := _LINE.match(line):
            entries[-1].append((found[1].strip(), found[2]))
    read = [(_impact(entry), entry) for entry in entries if entry and entry[0][0].startswith("testcase")]
    return (
        tuple(impact for impact, _ in read if impact),
        tuple(" ".join(value for _, value in entry) for impact, entry in read if not impact),
    )


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
    if not found:
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
