"""The performance index: a weighted geometric mean over a basket of benchmarks, release by release. Pure.

    index = 100 · exp(Σ w·L / Σ w),  L = the mean of dir·ln(x / x₀) over a benchmark's places (scenario and machine)

over the matched basket: the benchmarks, and of them the places, that were measured on both kernels; dir is -1 where
lower is better. x₀ is of the release that the chain hangs on: the first one, until the basket changes behind a release,
or something is measured there that the first one lacks. Then the chain goes on from that release: its index takes the
place of 100. So a change of the basket never moves the index by itself. The interval is the bootstrap's (B. Efron,
1979): all samples are drawn anew 599 times, and the whole chain is reckoned from each.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracker.comparison.lines import Cell
from tracker.index.basket import Entry

RESAMPLES = 599
_TAIL = 15  # so that the 15th and the 585th are the ends of a 95 % interval (tracker/significance.py)
_MANY = 200  # from here on means of samples are drawn as normal
Array = NDArray[np.float64]
Places = Mapping[str, Cell]  # by a name for scenario and machine


@dataclass(frozen=True, slots=True)
class Measured:
    """A kernel: its basket, and what was measured of each benchmark, by its key."""

    name: str
    basket: tuple[Entry, ...]
    readings: Mapping[str, Places]


@dataclass(frozen=True, slots=True)
class Contribution:
    """A benchmark's part in an index. `pct`: its change against the release that the chain hangs on, plus is better;
    `share_pct`: its weight; `points`: by how many points of the index it moves it; `step_pct`: its change against the
    kernel before, None where both don't have it; `places`: over how many it was averaged.
    """

    key: str
    pct: float
    share_pct: float
    points: float
    step_pct: float | None
    places: int


@dataclass(frozen=True, slots=True)
class Point:
    """The index of one kernel; `value` None where nothing can be compared. `matched` of `total` benchmarks are in it,
    `missing` says why the others are not. `against`: the release that the chain hangs on.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    matched: int
    total: int
    against: str
    contributions: tuple[Contribution, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Chain:
    """Where the chain hangs: the kernel and its index, the actual one first and one for each resample behind it."""

    kernel: Measured
    logs: Mapping[str, Mapping[str, Array]]
    level: Array = field(default_factory=lambda: np.full(1 + RESAMPLES, 100.0))


def series(kernels: Sequence[Measured]) -> list[Point]:
    """The index of every kernel, which come in their order."""
    points: list[Point] = []
    chain: _Chain | None = None
    before: _Logs = {}
    for place, kernel in enumerate(kernels):
        follower = kernels[place + 1] if place + 1 < len(kernels) else kernel
        logs, odd = _logs(kernel, (*kernel.basket, *follower.basket))
        if chain is None:
            if logs:
                chain = _Chain(kernel, logs)
            points.append(_first(kernel, logs, odd))
        else:
            point, level = _next(chain, kernel, logs, odd, before)
            points.append(point)
            if level is not None and _hangs_on(chain, kernel, follower, logs):
                chain = _Chain(kernel, logs, level)
        before = logs
    return points


_Logs = Mapping[str, Mapping[str, Array]]


def _hangs_on(chain: _Chain, kernel: Measured, follower: Measured, logs: _Logs) -> bool:
    """Whether the chain goes on from this kernel: the basket changes behind it, or it has what the old one lacks."""
    if {_what_counts(each) for each in follower.basket} != {_what_counts(each) for each in kernel.basket}:
        return True
    return any(place not in chain.logs.get(key, {}) for key, places in logs.items() for place in places)


def _what_counts(entry: Entry) -> tuple[str, str, float]:
    return entry.key, entry.direction, entry.weight


def _first(kernel: Measured, logs: _Logs, odd: Mapping[str, str]) -> Point:
    missing = tuple((entry.key, odd.get(entry.key, "not measured")) for entry in kernel.basket if entry.key not in logs)
    total = len(kernel.basket)
    matched = total - len(missing)
    if not logs:
        return Point(kernel.name, None, None, None, 0, total, "", (), missing)
    return Point(kernel.name, 100.0, 100.0, 100.0, matched, total, kernel.name, (), missing)


def _next(
    chain: _Chain, kernel: Measured, logs: _Logs, odd: Mapping[str, str], before: _Logs
) -> tuple[Point, Array | None]:
    """The index of a kernel behind the first one, and the same for each resample."""
    moves: list[tuple[Entry, Array, int]] = []
    missing: list[tuple[str, str]] = []
    for entry in kernel.basket:
        own, theirs = logs.get(entry.key, {}), chain.logs.get(entry.key, {})
        shared = [place for place in own if place in theirs]
        if shared:
            moves.append((entry, _mean([own[place] - theirs[place] for place in shared]), len(shared)))
        if shared and entry.key in odd:
            missing.append((entry.key, f"{odd[entry.key]} in some places, which are left out"))
        elif not shared:
            missing.append((entry.key, _why(entry, own, theirs, odd, chain.kernel.name)))
    total, weights = len(kernel.basket), sum(entry.weight for entry, _, _ in moves)
    against = chain.kernel.name
    if not weights:
        return Point(kernel.name, None, None, None, 0, total, against, (), tuple(missing)), None
    log = _mean([entry.weight * move for entry, move, _ in moves]) * (len(moves) / weights)
    level = chain.level * np.exp(log)
    contributions = tuple(
        _contribution(entry, move, count, weights, (logs, before), level[0] - chain.level[0], log[0])
        for entry, move, count in moves
    )
    low, high = np.sort(level[1:])[[_TAIL - 1, RESAMPLES - _TAIL]].tolist()
    value = float(level[0])
    return Point(kernel.name, value, low, high, len(moves), total, against, contributions, tuple(missing)), level


def _mean(some: Sequence[Array]) -> Array:
    return np.asarray(np.mean(np.stack(some), axis=0))


def _why(
    entry: Entry, own: Mapping[str, Array], theirs: Mapping[str, Array], odd: Mapping[str, str], against: str
) -> str:
    if entry.key in odd:
        return odd[entry.key]
    if not own:
        return "not measured"
    return f"not measured on {against}" + (" on the same machines" if theirs else "")


def _contribution(
    entry: Entry, move: Array, places: int, weights: float, logs: tuple[_Logs, _Logs], points: float, log: float
) -> Contribution:
    share = entry.weight / weights
    own, earlier = (each.get(entry.key, {}) for each in logs)
    shared = [place for place in own if place in earlier]
    step = _mean([own[place] - earlier[place] for place in shared])[0] if shared else None
    part = points * share * float(move[0]) / log if log else 0.0
    return Contribution(
        entry.key, _percent(move[0]), 100 * share, part, None if step is None else _percent(step), places
    )


def _percent(log: float) -> float:
    return 100 * math.expm1(min(log, 700.0))


def _logs(kernel: Measured, basket: Sequence[Entry]) -> tuple[_Logs, dict[str, str]]:
    """Of every benchmark and each of its places dir·ln(x), actual and resampled; and what is left out, and why."""
    found: dict[str, dict[str, Array]] = {}
    odd: dict[str, str] = {}
    for entry in {each.key: each for each in basket}.values():
        sign = {"higher": 1.0, "lower": -1.0}.get(entry.direction)
        if sign is None:
            odd[entry.key] = "nobody has told which direction is better"
            continue
        for place, cell in kernel.readings.get(entry.key, {}).items():
            if not (cell.mean > 0 and math.isfinite(cell.mean)):
                odd[entry.key] = "zero was measured" if cell.mean == 0 else "a negative number was measured"
                continue
            means = _resampled(cell, f"{kernel.name} {entry.key} {place}")
            found.setdefault(entry.key, {})[place] = sign * np.log(means)
    return found, odd


def _resampled(cell: Cell, seed: str) -> Array:
    """The mean, then RESAMPLES means of samples drawn anew; the same where there are no two samples to draw from."""
    n = len(cell.samples)
    drawn = np.full(1 + RESAMPLES, cell.mean)
    if n < 2:
        return drawn
    samples = np.array(cell.samples)
    chance = np.random.default_rng(list(hashlib.sha256(seed.encode("utf-8", "replace")).digest()))
    if n > _MANY:
        means = cell.mean + samples.std() / math.sqrt(n) * chance.standard_normal(RESAMPLES)
    else:
        means = samples[chance.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    if np.all(means > 0) and np.all(np.isfinite(means)):
        drawn[1:] = means
    return drawn
