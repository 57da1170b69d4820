"""The basket: which benchmarks count, with what weight, from which release to which. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracker.domain import versions


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: a metric in the scenarios with these parameters, or in all its scenarios without any."""

    metric: str
    params: tuple[tuple[str, str], ...]
    direction: str
    weight: float = 1.0
    since: str = ""
    until: str = ""

    @property
    def key(self) -> str:
        """Identifies the benchmark, whatever its weight."""
        return f"{self.metric} ({params_text(self.params)})" if self.params else self.metric

    def takes(self, metric: str, params: Mapping[str, str]) -> bool:
        """Return whether a measurement is of this benchmark."""
        return metric == self.metric and all(params.get(name) == value for name, value in self.params)

    def holds_at(self, version: str) -> bool:
        """Whether it counts in a release. An -rc counts as its release, a name that is no version as the newest."""
        parsed = versions.parse(version)
        since, until = versions.parse(self.since), versions.parse(self.until)
        if parsed is None:
            return until is None
        return (since is None or parsed.cycle == since.cycle or parsed >= since) and (
            until is None or parsed.cycle == until.cycle or parsed <= until
        )


def read_params(text: str) -> tuple[tuple[str, str], ...]:
    """Parse parameters as people write them, sorted by name: "mode=process, test=mmap1"; a comma in a value is doubled.
    Raises ValueError, which says what was expected.
    """
    found = []
    parts = (each.replace("\0", ",").strip() for each in text.replace("\0", "").replace(",,", "\0").split(","))
    for part in filter(None, parts):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"expected comma-separated name=value pairs, found {part[:40]!r}")
        found.append((name.strip(), value.strip()))
    return tuple(sorted(found))


def params_text(params: Sequence[tuple[str, str]]) -> str:
    """Return parameters as text."""
    return ", ".join(f"{name}={value}".replace(",", ",,") for name, value in params)


def at(entries: Sequence[Benchmark], version: str) -> tuple[Benchmark, ...]:
    """Return the basket of a release: of the entries for one benchmark, the one that starts last counts."""
    held = sorted((entry for entry in entries if entry.holds_at(version)), key=lambda entry: _begins(entry.since))
    return tuple({entry.key: entry for entry in held}.values())


def _begins(since: str) -> tuple[bool, versions.Version]:
    parsed = versions.parse(since)
    return parsed is not None, parsed or versions.Version(0, 0, 0, 0, 0)
