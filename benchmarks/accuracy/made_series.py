"""Made series of builds with known steps, and without any: spikes, drift, noisy runs, noisy builds, two modes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Runs = list[list[float]]  # by build


@dataclass(frozen=True, slots=True)
class MadeSeries:
    """The runs of each build, the first build on the new level (None if its level stays), and the first one after it
    that is back on the old level.
    """

    kind: str
    builds: Runs
    step: int | None = None
    back: int | None = None

    @property
    def levels(self) -> list[float]:
        return [median(runs) for runs in self.builds]


def made(kind: str, rng: random.Random) -> MadeSeries:
    """Make one series: 30 to 180 builds of 1 to 6 runs around a level of 1 to 10,000."""
    count, level = rng.randint(30, 180), 10 ** rng.uniform(0, 4)
    return KINDS[kind](rng, level, count)


def _runs(rng: random.Random, level: float, spread: float, outliers: float = 0.02) -> list[float]:
    """The runs of one build: normal, with a few far above, as measured times have them."""
    return [
        level
        * max(0.05, 1 + rng.gauss(0, spread) + (rng.expovariate(1 / (4 * spread)) if rng.random() < outliers else 0))
        for _ in range(rng.choice((1, 1, 2, 3, 4, 4, 6)))
    ]


def _stable(rng: random.Random, level: float, count: int) -> MadeSeries:
    spread, build = rng.uniform(0.003, 0.02), rng.uniform(0, 0.006)
    return MadeSeries("stable", [_runs(rng, level * (1 + rng.gauss(0, build)), spread) for _ in range(count)])


def _step(rng: random.Random, level: float, count: int) -> MadeSeries:
    """A step of 6 to 25 times the spread of the builds, to either side, with room for both windows."""
    spread, build = rng.uniform(0.003, 0.02), rng.uniform(0, 0.006)
    size = rng.choice((1, 1, 1, -1)) * max(0.03, rng.uniform(4, 20) * (spread / 2 + build))
    at = rng.randint(12, count - 10)
    levels = [level * (1 + (size if number >= at else 0)) * (1 + rng.gauss(0, build)) for number in range(count)]
    return MadeSeries("step", [_runs(rng, each, spread) for each in levels], at)


def returned(rng: random.Random) -> MadeSeries:
    """Make a series with a step that is undone 7 to 30 builds later, as a fix does."""
    count, level = rng.randint(60, 180), 10 ** rng.uniform(0, 4)
    spread, build = rng.uniform(0.003, 0.02), rng.uniform(0, 0.006)
    size = rng.choice((1, -1)) * max(0.03, rng.uniform(4, 20) * (spread / 2 + build))
    at = rng.randint(12, count - 45)
    back = at + rng.randint(7, 30)
    levels = [level * (1 + (size if at <= n < back else 0)) * (1 + rng.gauss(0, build)) for n in range(count)]
    return MadeSeries("returned", [_runs(rng, each, spread) for each in levels], at, back)


def _spike(rng: random.Random, level: float, count: int) -> MadeSeries:
    spread = rng.uniform(0.005, 0.02)
    levels = [level] * count
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(count), rng.uniform(0.05, 0.4)
        for number in range(at, min(count, at + rng.randint(1, 3))):
            levels[number] = level * (1 + size)
    return MadeSeries("spike", [_runs(rng, each, spread) for each in levels])


def _deviation(rng: random.Random, level: float, count: int) -> MadeSeries:
    spread = rng.uniform(0.08, 0.25)
    return MadeSeries("high deviation", [_runs(rng, level, spread, 0.1) for _ in range(count)])


def _by_build(rng: random.Random, level: float, count: int) -> MadeSeries:
    """Each build has a level of its own, and some of it stays for the next: code that is laid out otherwise."""
    spread, own, keeps = rng.uniform(0.01, 0.05), rng.uniform(0.03, 0.08), rng.choice((0, 0, 0.3, 0.6))
    offset, builds = 0.0, []
    for _ in range(count):
        offset = keeps * offset + rng.gauss(0, own)
        builds.append(_runs(rng, level * (1 + offset), spread))
    return MadeSeries("build-dependent", builds)


def _drift(rng: random.Random, level: float, count: int) -> MadeSeries:
    spread, slope = rng.uniform(0.003, 0.02), rng.uniform(-0.15, 0.15)
    return MadeSeries("drift", [_runs(rng, level * (1 + slope * number / count), spread) for number in range(count)])


def _modes(rng: random.Random, level: float, count: int) -> MadeSeries:
    """Each build falls into one of two modes, and runs of some series do."""
    spread, apart, share = rng.uniform(0.003, 0.02), rng.uniform(0.05, 0.3), rng.uniform(0.15, 0.5)
    levels = [level * (1 + (apart if rng.random() < share else 0)) for _ in range(count)]
    return MadeSeries("two modes", [_runs(rng, each, spread) for each in levels])


KINDS: dict[str, Callable[[random.Random, float, int], MadeSeries]] = {
    "step": _step,
    "stable": _stable,
    "spike": _spike,
    "high deviation": _deviation,
    "build-dependent": _by_build,
    "drift": _drift,
    "two modes": _modes,
}
