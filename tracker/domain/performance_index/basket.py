"""The benchmarks that count, how much, and from which release to which. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracker.domain import versions


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: a metric in the scenarios that have these parameters, all of its scenarios where there are none."""

    metric: str
    params: tuple[tuple[str, str], ...]
    direction: str
    weight: float = 1.0
    since: str = ""
    until: str = ""

    @property
    def key(self) -> str:
        """Names the benchmark, whatever its weight."""
        return f"{self.metric} ({written(self.params)})" if self.params else self.metric

    def takes(self, metric: str, params: Mapping[str, str]) -> bool:
        """Whether a measurement is of this benchmark."""
        return metric == self.metric and all(params.get(name) == value for name, value in self.params)

    def holds_at(self, version: str) -> bool:
        """Whether it counts in a release. A candidate counts as what it leads to, what is no version as the newest."""
        told = versions.parse(version)
        since, until = versions.parse(self.since), versions.parse(self.until)
        if told is None:
            return until is None
        return (since is None or told.cycle == since.cycle or told >= since) and (
            until is None or told.cycle == until.cycle or told <= until
        )


def read_params(text: str) -> tuple[tuple[str, str], ...]:
    """Parameters as people write them, in the order of their names: "mode=process, test=mmap1"; a comma in a value is
    written twice. ValueError says what was expected.
    """
    found = []
    parts = (each.replace("\0", ",").strip() for each in text.replace("\0", "").replace(",,", "\0").split(","))
    for part in filter(None, parts):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"expected name=value pairs with commas between them, found {part[:40]!r}")
        found.append((name.strip(), value.strip()))
    return tuple(sorted(found))


def written(params: Sequence[tuple[str, str]]) -> str:
    """The same as text."""
    return ", ".join(f"{name}={value}".replace(",", ",,") for name, value in params)


def at(entries: Sequence[Benchmark], version: str) -> tuple[Benchmark, ...]:
    """The basket of a release: of entries for the same benchmark, the one that began last counts."""
    held = sorted((entry for entry in entries if entry.holds_at(version)), key=lambda entry: _begins(entry.since))
    return tuple({entry.key: entry for entry in held}.values())


def _begins(since: str) -> tuple[bool, versions.Version]:
    told = versions.parse(since)
    return told is not None, told or versions.Version(0, 0, 0, 0, 0)
