"""A curve: one metric over builds, from packed points to builds, noise, changes and a history. Pure.

A point has the samples of one build from one source. Points are packed many to a row, so that a hundred million
samples fit on one disk: zlib over columns (times, numbers of samples, samples, names), since numbers of one kind
beside each other compress to half the size. A segment of 500 points is unpacked in a tenth of a millisecond.

A build has all points of one name: its level is the median, on which changes are looked for, and its mean has a
confidence interval. The noise is known from the history, between runs and between builds, with changes of the level
taken out; if builds fall into two modes, the distance between these is the noise. A change is where the level moved to
stay (`change_points`), and `shifts` says how far.

A reading takes into account what was reported on the curve. A bisection measures its culprit, which the builds after
it may not hold yet: it is merged later, or never. So the bad side of a report's own measurement is not part of the
curve's history, and a good build after it proves no fix.
"""

import math
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from statistics import median, variance
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tracker.domain import versions
from tracker.domain.statistics import ENDS, RESAMPLES, Array, change_pct

# --- Points, and how they are packed ---

MOST_SAMPLES = 10_000  # per point; what is beyond them is dropped
_MAX_BYTES = 64 << 20
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_HEAD = struct.Struct("<II")  # points, samples


class CurvePoint(NamedTuple):  # a page reads thousands; frozen dataclasses take four times as long to make
    """The samples of one build from one source. `at`: the build's place in time; `build`: a sha, or a release's name;
    `source`: what measured it, "result 12" or "release result 7".
    """

    at: datetime
    build: str
    samples: tuple[float, ...]
    source: str

    @property
    def key(self) -> tuple[datetime, str, str]:
        """What identifies a point in its curve; the order of points, too."""
        return (self.at, self.build, self.source)


def to_the_millisecond(point: CurvePoint) -> CurvePoint:
    """Return a point as it is stored, so that it is found again."""
    return point._replace(at=point.at.replace(microsecond=point.at.microsecond // 1000 * 1000))


def merged(old: Iterable[CurvePoint], new: Iterable[CurvePoint]) -> list[CurvePoint]:
    """Return all points in order, each once; of two with one key the new one counts."""
    points = {point.key: point for point in old}
    points.update((point.key, point) for point in new)
    return [points[key] for key in sorted(points)]


def pack(points: Sequence[CurvePoint]) -> bytes:
    """Return points as bytes, in their order. Times are kept to the millisecond."""
    times = array("q", [(point.at - _EPOCH) // _MILLISECOND for point in points])
    cut = [point.samples[:MOST_SAMPLES] for point in points]
    counts = array("I", map(len, cut))
    samples = array("d", [value for group in cut for value in group])
    names = "\n".join(part.replace("\n", " ") for point in points for part in (point.build, point.source))
    if sys.byteorder == "big":
        for column in (times, counts, samples):
            column.byteswap()
    head = _HEAD.pack(len(points), len(samples))
    return zlib.compress(b"".join([head, times.tobytes(), counts.tobytes(), samples.tobytes(), names.encode()]), 3)


def unpack(packed: bytes) -> list[CurvePoint]:
    """Return the points that `pack` stored."""
    raw = zlib.decompressobj().decompress(packed, _MAX_BYTES)
    count, total = _HEAD.unpack_from(raw)
    times, counts, samples = array("q"), array("I"), array("d")
    at = _HEAD.size
    for column, size in ((times, count * 8), (counts, count * 4), (samples, total * 8)):
        column.frombytes(raw[at : at + size])
        if sys.byteorder == "big":
            column.byteswap()
        at += size
    names = raw[at:].decode().split("\n")
    values, ends = tuple(samples), list(accumulate(counts))
    own = [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    whens = [datetime.fromtimestamp(time / 1000, UTC) for time in times]
    return list(map(CurvePoint, whens, names[0 : 2 * count : 2], own, names[1 : 2 * count : 2]))


# --- Builds ---

# The 97.5th percentile of Student's t by degrees of freedom, from 1 on; beyond them the normal distribution's.
_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09)
_QUANTILES = np.array([0.0, 0.0, *_T, 1.96])  # by number of runs: one has no spread
_SMALLEST, _LARGEST = 1e-150, 1e150  # between them, squares and their sums are finite and not zero


class Build(NamedTuple):  # a page makes thousands; frozen dataclasses take four times as long to make
    """All runs of one build. `low` to `high`: the 95% confidence interval of the mean; the mean alone for one run.

    `level` is the median, on which changes are looked for.
    """

    at: datetime
    name: str
    samples: tuple[float, ...]
    sources: tuple[str, ...]
    level: float
    mean: float
    low: float
    high: float


def builds_of(points: Iterable[CurvePoint]) -> list[Build]:
    """Return the builds in the order of their first points.

    Samples that are not finite, or so large or small that their squares are not, are left out.
    """
    together: dict[str, list[CurvePoint]] = {}
    for point in sorted(points, key=attrgetter("at", "build", "source")):
        together.setdefault(point.build, []).append(point)
    samples = _measurable(
        [
            group[0].samples if len(group) == 1 else tuple(chain.from_iterable(point.samples for point in group))
            for group in together.values()
        ]
    )
    kept = [(name, group, own) for (name, group), own in zip(together.items(), samples, strict=True) if own]
    columns = _statistics([own for _, _, own in kept])
    return [
        Build(group[0].at, name, own, tuple(dict.fromkeys([point.source for point in group])), *numbers)
        for (name, group, own), numbers in zip(kept, zip(*columns, strict=True), strict=True)
    ]


def _measurable(samples: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return the samples of each build without those that can't be squared; mostly, there are none."""
    size = np.abs(np.fromiter(chain.from_iterable(samples), float))
    if np.all((size == 0) | ((size > _SMALLEST) & (size < _LARGEST))):
        return samples
    return [tuple(sample for sample in own if sample == 0 or _SMALLEST < abs(sample) < _LARGEST) for own in samples]


def _statistics(samples: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return median, mean, and both ends of the mean's interval of each build, all builds at once."""
    if not samples:
        return [], [], [], []
    counts = np.fromiter(map(len, samples), np.int64)
    flat = np.fromiter(chain.from_iterable(samples), float)
    ends = np.cumsum(counts)
    starts = ends - counts
    of_build = np.repeat(np.arange(len(counts)), counts)
    means = np.add.reduceat(flat, starts) / counts
    squares = np.add.reduceat((flat - means[of_build]) ** 2, starts)
    half = _QUANTILES[np.minimum(counts, len(_QUANTILES) - 1)] * np.sqrt(squares / np.maximum(1, (counts - 1) * counts))
    ordered = flat[np.lexsort((flat, of_build))]
    medians = (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2
    return medians.tolist(), means.tolist(), (means - half).tolist(), (means + half).tolist()


# --- Noise ---

LEAST_BUILDS = 5  # of different times: those of one bisection, whose steps stand beside its ends, are not a history
_LEAST_SHARE = 0.15  # of the builds in the smaller of two modes
_APART = 4.0  # spreads within the modes that they are apart
_LEAST_APART_PCT = 2.0


@dataclass(frozen=True, slots=True)
class CurveNoise:
    """Robust standard deviations in per cent of the level, with changes of the level taken out.

    `run_pct`: of the runs of one build, None without a build of two runs; `build_pct`: of the builds' medians.
    `modes_pct`: how far two modes are apart, if builds fall into two. `runs`, `builds`: how many it is based on.
    """

    run_pct: float | None
    build_pct: float
    modes_pct: float | None
    runs: int
    builds: int

    @property
    def pct(self) -> float | None:
        """What a change is compared with: the spread of builds or, if they have two modes, the distance between these.

        Builds that never differ have the spread of their runs; None if these don't differ either.
        """
        return max(self.build_pct, self.modes_pct or 0.0) or self.run_pct or None


def noise_of(builds: Sequence[Build], changes: Sequence[int]) -> CurveNoise | None:
    """Return the noise of a curve; None without a history long enough, or around zero.

    `changes`: the places of the first builds on a new level, those that were found and those that were reported.
    """
    if len({build.at for build in builds}) < LEAST_BUILDS:
        return None
    # The level around each build is the median of the builds between two changes.
    bounds = [0, *sorted(set(changes)), len(builds)]
    levels: list[float] = []
    for start, end in pairwise(bounds):
        if start < end:
            levels += [median(build.level for build in builds[start:end])] * (end - start)
    if not all(map(bool, levels)):
        return None
    residuals = [100 * (build.level - level) / abs(level) for build, level in zip(builds, levels, strict=True)]
    # The variance of a build's runs, such that the median over builds is right: that of a chi-squared variable is below
    # its mean (Wilson and Hilferty, 1931).
    variances = [
        variance(build.samples) / (1 - 2 / (9 * (len(build.samples) - 1))) ** 3 / (level * level)
        for build, level in zip(builds, levels, strict=True)
        if len(build.samples) > 1
    ]
    run_pct = 100 * math.sqrt(median(variances)) if variances else None
    build_pct, modes_pct = MAD * median(map(abs, residuals)), _modes(residuals)
    if not all(map(math.isfinite, (run_pct or 0.0, build_pct, modes_pct or 0.0))):
        return None  # levels and spreads too far apart to be divided
    return CurveNoise(run_pct, build_pct, modes_pct, sum(len(build.samples) for build in builds), len(builds))


def _modes(residuals: Sequence[float]) -> float | None:
    """Return the distance of two modes in per cent; None if there is one.

    The values are cut at their widest gap; both sides must be narrow compared with their distance.
    """
    ordered = sorted(residuals)
    least = max(2, math.ceil(_LEAST_SHARE * len(ordered)))
    if len(ordered) < 2 * least:
        return None
    gap, cut = max((ordered[number] - ordered[number - 1], number) for number in range(least, len(ordered) - least + 1))
    middles = low, high = median(ordered[:cut]), median(ordered[cut:])
    sides = zip((ordered[:cut], ordered[cut:]), middles, strict=True)
    spread = MAD * max(median(abs(value - middle) for value in side) for side, middle in sides)
    return high - low if high - low >= max(_LEAST_APART_PCT, _APART * spread) and gap >= 2 * spread else None


# --- Changes of the level ---

# Where it moved to stay, beyond what it usually does between builds. The curve is the median of each
# build's runs, so that the noise of runs, builds and long spikes are told apart:
#
# - A change is a difference between the medians of the builds before and of those after (the moving-window form of
# Hodges and Lehmann's shift), looked for at every build that has enough builds on both sides.
# - It has to exceed the spread of the builds around those medians (robust, by the median absolute deviation), as a
# t-test would ask; on both sides most builds have to lie on their own side of the middle, so a spike does not count.
# - It has to exceed what the curve did before between any two such windows: a curve whose level wanders with each build
# has to move further than it ever wanders. E-divisive (Matteson and James, 2014; Otava) and PELT (Killick, 2012) take
# such wandering for changes; docs/measurements.md has the comparison.
#
# Only builds up to `AFTER` past the change are looked at, so a change is found as soon as these are measured. How large
# it is, is known better with time: `shifts` compares the whole stretches on both sides of each change.

BEFORE, LEAST_BEFORE, AFTER = 12, 5, 6  # builds
# What a change must exceed, chosen on made series (benchmarks/accuracy/change_points.py)
SCORE = 5.0  # robust spreads that the medians must be apart
USUAL = 2.0  # times the curve's usual movement
SHARE = 0.9  # of the builds on each side that lie on their side of the middle
LEAST_PCT = 1.0  # of the level before
_USUAL_QUANTILE = 0.9
_FLOOR = 1e-9  # of the level: the spread of equal numbers
MAD = 1.4826  # a normal distribution's standard deviation in median absolute deviations


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """`index`: the first build on the new level. `old` and `new`: the medians before and after. `noise`: the robust
    standard deviation of the builds around them.
    """

    index: int
    old: float
    new: float
    noise: float


def change_points(levels: Sequence[float]) -> list[ChangePoint]:
    """Return the changes of a curve, by one level per build in order; [] where there are too few builds.

    Levels must be finite. What was found stays found as builds are added, unless its place is known better by then.
    """
    curve = np.asarray(levels, dtype=float)
    changes: list[ChangePoint] = []
    start = 0
    while (change := _first_change(curve[start:])) is not None:
        start += change.index
        changes.append(replace(change, index=start))
    return changes


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a level moved: the medians of all builds from the change before, or the beginning, to the change after,
    or the end. `interval`: of the change in per cent, None from zero and for less than LEAST_BEFORE builds on a side.
    """

    old: float
    new: float
    interval: tuple[float, float] | None

    @property
    def change_pct(self) -> float | None:
        """The change in per cent of the old level; None from zero."""
        return change_pct(self.old, self.new)


def shifts(levels: Sequence[float], changes: Sequence[ChangePoint]) -> list[Shift]:
    """Return how far each change moved the level.

    The 95% intervals are the percentile bootstrap's: the builds of each stretch are drawn again, with a fixed seed.
    """
    bounds = [0, *(change.index for change in changes), len(levels)]
    stretches = [np.asarray(levels[start:end], dtype=float) for start, end in pairwise(bounds)] if changes else []
    medians = [float(np.median(stretch)) for stretch in stretches]
    rng = np.random.default_rng(len(levels))
    drawn = [_medians_drawn_again(stretch, rng) for stretch in stretches]
    return [
        Shift(old, new, _interval(olds, news) if old else None)
        for (old, new), (olds, news) in zip(pairwise(medians), pairwise(drawn), strict=True)
    ]


def _medians_drawn_again(stretch: Array, rng: np.random.Generator) -> Array | None:
    if len(stretch) < LEAST_BEFORE:
        return None
    return np.asarray(np.median(rng.choice(stretch, (RESAMPLES, len(stretch))), axis=1))


def _interval(olds: Array | None, news: Array | None) -> tuple[float, float] | None:
    if olds is None or news is None or not np.all(olds):
        return None
    low, high = np.sort(100 * (news - olds) / np.abs(olds))[list(ENDS)]
    return (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None


def _first_change(curve: Array) -> ChangePoint | None:
    """Return the first change. After it the curve begins anew: no window reaches back over it."""
    if len(curve) < LEAST_BEFORE + AFTER:
        return None
    # All windows; the first ones have fewer builds before them than BEFORE
    parts = [
        _compared(curve[None, :at], curve[None, at : at + AFTER])
        for at in range(LEAST_BEFORE, min(BEFORE, len(curve) - AFTER + 1))
    ]
    if len(curve) >= BEFORE + AFTER:
        every = sliding_window_view(curve, BEFORE + AFTER)
        parts.append(_compared(every[:, :BEFORE], every[:, BEFORE:]))
    # For each place: the medians before and after, the spread around them, and the lesser share on its own side
    olds, news, spreads, shares = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    shifts = np.abs(news - olds)
    candidates = (
        (shifts > 0) & (shifts >= SCORE * spreads) & (shifts * 100 >= LEAST_PCT * np.abs(olds)) & (shares >= SHARE)
    )
    for number in np.flatnonzero(candidates):
        # How far the curve has moved between windows before, where no change was found; None if not known yet
        earlier = shifts[: max(0, number - AFTER)]
        usual = float(np.sort(earlier)[int(_USUAL_QUANTILE * len(earlier))]) if len(earlier) >= AFTER else None
        if usual is not None and shifts[number] < USUAL * usual:
            continue
        # The shift is largest where the windows meet at the step: look on a little.
        near = slice(number, number + AFTER)
        best = int(number) + int(np.argmax(np.where(candidates[near], shifts[near], -1)))
        old, new, at = float(olds[best]), float(news[best]), best + LEAST_BEFORE
        # The change is at the build where the two levels explain the curve best (least absolute deviations).
        low, high = max(1, at - AFTER), min(len(curve) - 1, at + AFTER)
        costs = np.cumsum(np.abs(curve[low:high] - old) - np.abs(curve[low:high] - new))
        index = low + int(np.argmin(np.concatenate([[0.0], costs])))
        return ChangePoint(index, old, new, float(spreads[best]))
    return None


def _compared(before: Array, after: Array) -> tuple[Array, Array, Array, Array]:
    old, new = np.median(before, axis=1), np.median(after, axis=1)
    residuals = np.abs(np.concatenate([before - old[:, None], after - new[:, None]], axis=1))
    spread = np.maximum(MAD * np.median(residuals, axis=1), _FLOOR * np.abs(old))
    middle, up = ((old + new) / 2)[:, None], (new > old)[:, None]
    share = np.minimum(((before < middle) == up).mean(axis=1), ((after > middle) == up).mean(axis=1))
    return old, new, spread, share


# --- Reading a curve ---

_BACK = 0.75  # of the distance to the old level; a curve that comes back less far has not recovered
_MANY = 2.0  # times the noise; of a smaller change nothing can be said


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """The change that a report measured here. `source`: of its own points, "result 12"."""

    commit: str
    old: float
    new: float
    source: str

    def back(self, level: float) -> float:
        """Return where a level is between the new one and the old one: 0 on the new level, 1 on the old one."""
        return (level - self.new) / (self.old - self.new)

    def is_bad(self, level: float) -> bool:
        return self.back(level) < 0.5


@dataclass(frozen=True, slots=True)
class CurveReading:
    """`builds`: all of them; `history`: without the bad sides of reports. `changes` and `cuts` are places in the
    history: the changes that were found, and all places where its level moved.
    """

    builds: Sequence[Build]
    history: Sequence[Build]
    changes: Sequence[ChangePoint]
    cuts: Sequence[int]
    noise: CurveNoise | None

    def place_of(self, commit: str, measured_at: datetime | None = None) -> int | None:
        """Return the place in the history from which builds may contain a commit; None if it was not measured.

        `measured_at`: of a commit that was measured, but is not on the curve yet.
        """
        return _place(self.builds, self.history, commit, measured_at)


@dataclass(frozen=True, slots=True)
class Undone:
    """The change that undid a reported one, to stay, and the level that the culprit had led to."""

    change: ChangePoint
    bad: float


def read_curve(builds: Sequence[Build], reported: Sequence[ReportedChange]) -> CurveReading:
    """Return the history of a curve, its changes and its noise."""
    by_source: dict[str, list[ReportedChange]] = {}
    for change in reported:
        if change.old != change.new:
            by_source.setdefault(change.source, []).append(change)
    history = []
    for build in builds:
        own = [by_source.get(source, ()) for source in build.sources]
        # Left out: bad sides that only reports' own measurements have
        if not (all(own) and any(change.is_bad(build.level) for rows in own for change in rows)):
            history.append(build)
    changes = change_points([build.level for build in history])
    landings = [_landing(builds, history, change) for rows in by_source.values() for change in rows]
    cuts = sorted({*(change.index for change in changes), *(landing for landing in landings if landing is not None)})
    return CurveReading(builds, history, changes, cuts, noise_of(history, cuts))


def undone(reading: CurveReading, reported: ReportedChange) -> Undone | None:
    """Return the change that undid a reported one; None while the curve does not contain it, or is not back for good.

    The curve must have been on the bad level after the culprit, and its last change must have brought it back.
    """
    start = reading.place_of(reported.commit)
    noise = (reading.noise.pct if reading.noise else None) or 0.0
    if start is None or abs(reported.new - reported.old) * 100 <= _MANY * noise * abs(reported.old):
        return None
    bad: float | None = None
    undo: Undone | None = None
    later = [point for point in reading.changes if point.index >= start]
    ends = [*(point.index for point in later), len(reading.history)]
    first = [build.level for build in reading.history[start : ends[0]][:AFTER]]
    if first and reported.is_bad(median(first)):
        bad = median(first)
    for change in later:
        if reported.is_bad(change.new):
            bad, undo = change.new if bad is None else bad, None
        elif bad is not None and reported.back(change.new) >= _BACK:
            undo = undo or Undone(change, bad)
        else:
            undo = None
    return undo


def _landing(builds: Sequence[Build], history: Sequence[Build], reported: ReportedChange) -> int | None:
    """Return the place where the builds after a culprit begin to contain it; None if those measured first don't."""
    if (start := _place(builds, history, reported.commit)) is None:
        return None
    following = [build.level for build in history[start : start + AFTER]]
    if not following or not reported.is_bad(median(following)):
        return None
    return next((start + n for n, level in enumerate(following) if reported.is_bad(level)), None)


def _place(
    builds: Sequence[Build], history: Sequence[Build], commit: str, measured_at: datetime | None = None
) -> int | None:
    at = next((build.at for build in builds if build.name == commit), None) or measured_at
    return None if at is None else next((n for n, build in enumerate(history) if build.at >= at), len(history))


# --- Stable before a commit ---


@dataclass(frozen=True, slots=True)
class StableHistory:
    """The builds before a commit, from the last change of the level on. `modes_pct`: what two modes are apart."""

    since: str
    at: datetime
    builds: int
    runs: int
    modes_pct: float | None = None

    @property
    def text(self) -> str:
        """ "stable since v6.9, 41 builds"; a date instead of a sha.

        >>> from datetime import UTC
        >>> StableHistory("v6.9", datetime(2026, 5, 12, tzinfo=UTC), 41, 220).text
        'stable since v6.9, 41 builds'
        """
        since = self.since if versions.parse(self.since) else f"{self.at:%Y-%m-%d}"
        return f"stable since {since}, {self.builds} builds"


def history_before(reading: CurveReading, commit: str, measured_at: datetime | None = None) -> StableHistory | None:
    """Return how long a curve was stable before a commit; None if it was not measured, or too little before it.

    `measured_at`: of a commit that was measured, but is not on the curve yet.
    """
    place = reading.place_of(commit, measured_at)
    if place is None:
        return None
    start = max((cut for cut in reading.cuts if cut < place), default=0)
    stable = reading.history[start:place]
    if len({build.at for build in stable}) < LEAST_BUILDS:
        return None
    first = stable[0]
    modes = reading.noise.modes_pct if reading.noise else None
    return StableHistory(first.name, first.at, len(stable), sum(len(build.samples) for build in stable), modes)
