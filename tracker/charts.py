"""All charts, as numbers: from values to the coordinates of an SVG, or to lines of text. Pure.

A template only puts a chart's numbers into an SVG. Where there is too little to draw, there is no chart; where there
is too much, samples are thinned out and neighbouring builds share a column.

- Bars: a test with the first kernel as 100; also as plain text for a terminal.
- Bisection: each sample of every measured commit as a dot, with means, in git's order.
- Curve: samples as dots, means with their intervals, changes and releases as lines; builds at equal distances.
- Burn-down: the open regressions of a cycle at each release candidate.
- Index: the index over releases; its points are links.
- Overlay: two curves over time, each in per cent of its own first level, so that their scales don't matter.
- Sparkline: the samples of both sides of a triage row, from the heights that its report caches.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, pstdev
from typing import Any

from tracker.domain.curves import Build
from tracker.domain.kernel_comparison import ComparisonLine
from tracker.domain.performance_index import IndexPoint
from tracker.domain.text import Scale, number, scale
from tracker.domain.versions import CycleStep

# --- Bars ---

_BARS_WIDTH, _BARS_LEFT, _STEP, _THICK = 460, 96, 20, 12
_VALUE = 96  # room for the number beside a bar, and for the runs
_LETTERS = 36
_BARS_LABEL = 24  # characters of a kernel's name
_LESS = "(lower is better)"


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one kernel: its position and its end, the ends of its interval if there is one, and its runs."""

    label: str
    value: str
    y: int
    end: int
    low: int | None = None
    high: int | None = None
    runs: int = 0

    @property
    def repeated(self) -> str:
        """ ", n = 5"; "" of a single run, or where the number is not known."""
        return f", n = {self.runs}" if self.runs > 1 else ""

    @property
    def text(self) -> int:
        """Where the value stands: beyond the bar and its interval."""
        return max(self.end, self.high or 0) + 6

    @property
    def middle(self) -> int:
        return self.y + _THICK // 2

    @property
    def width(self) -> int:
        return self.end - _BARS_LEFT


@dataclass(frozen=True, slots=True)
class Bars:
    """The whole chart; `description`: for screen readers, `hundred`: where 100 is."""

    bars: Sequence[Bar]
    height: int
    hundred: int
    description: str
    note: str = ""
    width: int = _BARS_WIDTH
    left: int = _BARS_LEFT
    thick: int = _THICK


# A kernel's or a variant's name, its value with the first as 100, the ends of its interval, None if not measured; runs.
BarValue = tuple[str, float | None, float | None, float | None, int]


def bars(line: ComparisonLine, labels: Sequence[str]) -> Bars | None:
    """Return the chart of one test; None if fewer than two kernels can be compared."""
    return relative_bars(f"{line.test.metric}, {labels[0]} as 100", _values(line, labels), _note(line))


def letters(line: ComparisonLine, labels: Sequence[str]) -> list[str]:
    """Return the same chart as lines of text."""
    return letters_of(_values(line, labels), _note(line))


def _values(line: ComparisonLine, labels: Sequence[str]) -> list[BarValue]:
    """Return each kernel's mean with the first one's as 100, and its interval where there is one."""
    return [
        (
            label,
            value,
            100 + change.low if change and change.low is not None else None,
            100 + change.high if change and change.high is not None else None,
            cell.side.n if cell else 0,
        )
        for label, value, change, cell in zip(labels, line.relative, line.changes, line.cells, strict=True)
    ]


def _note(line: ComparisonLine) -> str:
    return _LESS if line.test.direction == "lower" else ""


def relative_bars(name: str, values: Sequence[BarValue], note: str = "") -> Bars | None:
    """Return a chart of values with the first as 100; None if fewer than two are known."""
    ends = [end for _, value, low, high, _ in values for end in (value, low, high) if end is not None]
    if sum(value is not None and value >= 0 for _, value, *_ in values) < 2:
        return None
    x = Scale(0, max(100.0, *ends), _BARS_LEFT, _BARS_WIDTH - _VALUE)
    drawn = []
    for index, (label, value, low, high, runs) in enumerate(values):
        y = 4 + index * _STEP
        if value is None or value < 0:
            drawn.append(Bar(label, "not measured", y, _BARS_LEFT))
        elif low is None or high is None:
            drawn.append(Bar(label, f"{value:.1f}", y, x(value), runs=runs))
        else:
            drawn.append(Bar(label, f"{value:.1f}", y, x(value), x(max(0.0, low)), x(max(0.0, high)), runs))
    described = ", ".join(f"{bar.label} {bar.value}{bar.repeated}" for bar in drawn)
    description = f"{name}: {described}{note and f' {note}'}"
    return Bars(drawn, 8 + _STEP * (len(values) + bool(note)), x(100), description, note)


def letters_of(values: Sequence[BarValue], note: str = "") -> list[str]:
    """Return the same chart as lines of text: "v5.6   91.3  #################"."""
    known = [value for _, value, *_ in values if value is not None and value >= 0]
    if len(known) < 2:
        return []
    longest = max(len(label[:_BARS_LABEL]) for label, *_ in values)
    asides = [
        ", ".join(
            filter(
                None,
                (
                    f"{low:.1f} to {high:.1f}" if low is not None and high is not None else "",
                    f"n = {runs}" if runs > 1 else "",
                ),
            )
        )
        for _, _, low, high, runs in values
    ]
    room = min(_LETTERS, 62 - longest - max(map(len, asides)))
    drawn = []
    for (label, value, *_), aside in zip(values, asides, strict=True):
        name = f"{label[:_BARS_LABEL]:<{longest}}"
        if value is None or value < 0:
            drawn.append(f"{name}  not measured")
        else:
            drawn.append(f"{name}  {value:>7.1f}  {'#' * round(room * value / max(known))}  {aside}".rstrip())
    return [*drawn, note] if note else drawn


# --- Bisection ---

MOST_GROUPS = 24
MOST_DOTS = 40  # per group
_LEFT, _TOP, _HEIGHT, _WIDTH = 70, 30, 190, 1120
_NARROWEST, _WIDEST = 42, 150  # pixels from one commit to the next


@dataclass(frozen=True, slots=True)
class BisectedCommit:
    """The samples of one commit. `verdict`: good, bad or skip; `is_mean`: the only one stands for several runs."""

    name: str
    verdict: str
    samples: tuple[float, ...]
    is_mean: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A drawn group: its center `x`, its dots (x, y), its mean line from `left` to `right`, its numbers in words."""

    group: BisectedCommit
    x: int
    dots: Sequence[tuple[int, int]]
    mean: int
    left: int
    right: int
    description: str


@dataclass(frozen=True, slots=True)
class BisectionChart:
    """The numbers of the SVG. `grid`: y coordinates with their values; `description`: the text alternative."""

    width: int
    height: int
    columns: Sequence[Column]
    grid: Sequence[tuple[int, str]]
    description: str


def groups_of(
    good: BisectedCommit,
    bad: BisectedCommit,
    payload: Mapping[str, Any],
    shas: tuple[str, str],
    later: Sequence[BisectedCommit] = (),
) -> list[BisectedCommit]:
    """Return the commits in git's order, each once: good steps, the parent, the culprit, bad steps, then later
    measurements (rechecks and fixes). `good`, `bad`: the samples of the two commits `shas`, which the steps have, too.

    Each good step is newer than those before it, and each bad one older: so git bisect halves what is left. Groups
    without samples are left out.
    """
    bisect = payload.get("bisect")
    tested = bisect.get("steps") if isinstance(bisect, Mapping) else None
    steps: list[BisectedCommit] = []
    for step in (tested if isinstance(tested, list) else [])[:MOST_GROUPS]:
        if not isinstance(step, Mapping):
            continue
        sha, samples = str(step.get("sha", "")), step.get("samples")
        if not any(sha and other and (sha.startswith(other) or other.startswith(sha)) for other in shas):
            verdict = str(step.get("verdict")) if step.get("verdict") in ("good", "bad") else "skip"
            steps.append(side(sha[:10], verdict, samples if isinstance(samples, list) else []))
    before = [step for step in steps if step.verdict == "good"]
    skipped = [step for step in steps if step.verdict == "skip"]
    after = [step for step in reversed(steps) if step.verdict == "bad"]
    groups = [*before, *skipped, good, bad, *after, *later[:MOST_GROUPS]]
    return [group for group in groups if group.samples]


def measured_later(name: str, metric: str, measured: Sequence[Any]) -> list[BisectedCommit]:
    """Return the same metric's mean from a later result that became no finding; only its mean is stored."""
    return [
        replace(
            side(name, "bad" if measurement.get("verdict") == "regression" else "good", [measurement.get("new")]),
            is_mean=True,
        )
        for measurement in measured
        if isinstance(measurement, Mapping) and measurement.get("metric") == metric
    ][:1]


def side(name: str, verdict: str, samples: Sequence[Any]) -> BisectedCommit:
    """Return the group of one commit, with its drawable samples; if there are too many, an evenly spaced subset."""
    numbers = [sample for sample in samples if isinstance(sample, (int, float)) and not isinstance(sample, bool)]
    kept = [float(sample) for sample in numbers if -1e300 < sample < 1e300]
    if len(kept) > MOST_DOTS:
        kept = [kept[number * len(kept) // MOST_DOTS] for number in range(MOST_DOTS)]
    return BisectedCommit(name, verdict, tuple(kept))


def read_payload(text: str) -> Mapping[str, Any]:
    """Parse a result's payload; return {} if it is not a JSON object."""
    try:
        payload = json.loads(text) if text else {}
    except ValueError:
        return {}
    return payload if isinstance(payload, Mapping) else {}


def chart(groups: Sequence[BisectedCommit], unit: str = "") -> BisectionChart | None:
    """Return the chart; None if there is nothing to compare."""
    y = scale([sample for group in groups for sample in group.samples], _TOP + _HEIGHT, _TOP)
    if len(groups) < 2 or y is None:
        return None
    step = max(_NARROWEST, min(_WIDEST, (_WIDTH - _LEFT) // len(groups)))
    columns = []
    for index, group in enumerate(groups):
        x, many, mean = _LEFT + step * index + step // 2, len(group.samples), fmean(group.samples)
        dots = [  # side by side, so that equal ones are visible
            (x + round((place - (many - 1) / 2) * min(3.0, 34 / many)), y(value))
            for place, value in enumerate(group.samples)
        ]
        spread = f" ± {number(pstdev(group.samples))}" if many > 1 else ""
        told = "mean of its runs" if group.is_mean else f"n = {many}"
        numbers = f"{number(mean)}{spread}{f' {unit}' if unit else ''}, {told}"
        description = f"{group.name} ({group.verdict}): {numbers}"
        columns.append(Column(group, x, dots, y(mean), x - 18, x + 18, description))
    description = "; ".join(column.description for column in columns)
    return BisectionChart(_LEFT + step * len(groups), _TOP + _HEIGHT + 36, columns, y.grid(number), description)


# --- Curve ---

_CURVE_LEFT, _RIGHT, _CURVE_TOP, _CURVE_HEIGHT, _CURVE_WIDTH = 64, 12, 26, 260, 1120
CURVE_MOST_DOTS = 3000  # samples that are drawn one by one
MOST_COLUMNS = 520  # of two pixels; beyond them, neighbouring builds share one
_LABEL = 90  # pixels between two labels


@dataclass(frozen=True, slots=True)
class CurveMark:
    """A build that a line marks: a change, a report's culprit, its fix, or a release. `href` may be empty."""

    build: str
    kind: str
    label: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The builds from one change to the next, by their places among those that are drawn, and their level."""

    first: int
    last: int
    level: float


@dataclass(frozen=True, slots=True)
class MarkLine:
    """A marked build as drawn; `y` is the height of its label, so that neighbours do not lie on each other."""

    mark: CurveMark
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class CurveChart:
    """The numbers of the SVG: paths of the samples, the means, the band of their intervals, and the level of each
    stretch between two changes; `ticks`: x with its date.
    """

    width: int
    height: int
    dots: str
    line: str
    band: str
    levels: str
    marks: Sequence[MarkLine]
    grid: Sequence[tuple[int, str]]
    ticks: Sequence[tuple[int, str]]
    left: int = _CURVE_LEFT
    top: int = _CURVE_TOP
    bottom: int = _CURVE_TOP + _CURVE_HEIGHT


def curve_chart(
    builds: Sequence[Build], marks: Sequence[CurveMark] = (), stretches: Sequence[Stretch] = ()
) -> CurveChart | None:
    """Return the chart; None for fewer than two builds. Builds stand at equal distances, in their order."""
    if len(builds) < 2:
        return None
    places = {build.name: place for place, build in enumerate(builds)}
    values = [bound for build in builds for bound in (build.low, build.high)]
    dotted = builds if sum(len(build.samples) for build in builds) <= CURVE_MOST_DOTS else ()
    values += [sample for build in dotted for sample in build.samples]
    values += [stretch.level for stretch in stretches]
    across, step = Scale(0, len(builds) - 1, _CURVE_LEFT, _CURVE_WIDTH - _RIGHT), math.ceil(len(builds) / MOST_COLUMNS)
    up = Scale(min(values), max(values), _CURVE_TOP + _CURVE_HEIGHT, _CURVE_TOP)
    columns = [(across(start), builds[start : start + step]) for start in range(0, len(builds), step)]
    upper = [f"{x} {up(max([build.high for build in part]))}" for x, part in columns]
    lower = [f"{x} {up(min([build.low for build in part]))}" for x, part in reversed(columns)]
    means = [f"{x} {up(sum([build.mean for build in part]) / len(part))}" for x, part in columns]
    lines: list[MarkLine] = []
    for mark in sorted((mark for mark in marks if mark.build in places), key=lambda mark: places[mark.build]):
        x = across(places[mark.build])
        lines.append(MarkLine(mark, x, 21 if any(line.y == 10 and x - line.x < _LABEL for line in lines) else 10))
    # Some builds with their dates, from the first to the last
    every, last = max(1, len(builds) // 8), len(builds) - 1
    dated = [*range(0, last - every // 2, every), last]
    dots = [f"M{across(place)} {up(value)}h0" for place, build in enumerate(dotted) for value in build.samples]
    return CurveChart(
        width=_CURVE_WIDTH,
        height=_CURVE_TOP + _CURVE_HEIGHT + 24,
        dots="".join(dots),
        line="M" + "L".join(means),
        band="M" + "L".join(upper + lower) + "z",
        levels="".join(f"M{across(part.first)} {up(part.level)}H{across(part.last)}" for part in stretches),
        marks=lines,
        grid=up.grid(number),
        ticks=[(across(place), f"{builds[place].at:%Y-%m-%d}") for place in dated],
    )


def outline(heights: str, width: int = 220, height: int = 36) -> str:
    """Return a small chart as an SVG path, from heights between 0 and 100: "0,50,100"; "" without any."""
    values = [int(digits) for digits in heights.split(",")] if heights else []
    if len(values) < 2:
        return ""
    x, y = Scale(0, len(values) - 1, 2, width - 2), Scale(0, 100, height - 3, 3)
    return "M" + "L".join(f"{x(place)} {y(value)}" for place, value in enumerate(values))


# --- Burn-down ---

_CYCLE_WIDTH, _CYCLE_HEIGHT, _SIDE, _CYCLE_TOP, _BOTTOM = 420, 96, 20, 18, 22


@dataclass(frozen=True, slots=True)
class CycleChart:
    """A burn-down as SVG coordinates: the line, its points, and a description."""

    width: int
    height: int
    line: str
    dots: Sequence[tuple[int, int, str, int]]  # x, y, version, open
    description: str


def cycle_chart(burn_down: Sequence[CycleStep]) -> CycleChart | None:
    """Return the chart of open regressions; None for fewer than two points."""
    if len(burn_down) < 2:
        return None
    x = Scale(0, len(burn_down) - 1, _SIDE, _CYCLE_WIDTH - _SIDE)
    y = Scale(0, max(step.open for step in burn_down) or 1, _CYCLE_HEIGHT - _BOTTOM, _CYCLE_TOP)
    named = [(step.point.version.rpartition("-")[2], step.open) for step in burn_down]
    dots = [(x(index), y(count), name, count) for index, (name, count) in enumerate(named)]
    summary = ", ".join(f"{step.open} at {step.point.version}" for step in burn_down)
    line = " ".join(f"{left},{top}" for left, top, _, _ in dots)
    return CycleChart(_CYCLE_WIDTH, _CYCLE_HEIGHT, line, dots, f"Open regressions: {summary}")


# --- Index ---

_INDEX_LEFT, _INDEX_RIGHT, _INDEX_TOP, _INDEX_HEIGHT = 48, 24, 18, 190
_INDEX_STEP, _LEAST = 64, 560


@dataclass(frozen=True, slots=True)
class Dot:
    """One point: its position, the ends of its interval, and its description."""

    name: str
    x: int
    y: int
    low: int
    high: int
    value: str
    description: str


@dataclass(frozen=True, slots=True)
class IndexChart:
    """`lines`: the points of each stretch without a gap; `grid`: heights with their values."""

    width: int
    height: int
    lines: Sequence[str]
    dots: Sequence[Dot]
    grid: Sequence[tuple[int, str]]
    description: str


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The index, a share or the like of one release, with its interval; None where it is not known."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    description: str


def index_chart(points: Sequence[IndexPoint]) -> IndexChart | None:
    """Return the chart of the index; None for fewer than two points."""
    trend = [TrendPoint(point.name, point.value, point.low, point.high, describe(point)) for point in points]
    return trend_chart(trend, "Performance index", from_zero=False)


def trend_chart(points: Sequence[TrendPoint], what: str, *, from_zero: bool = True) -> IndexChart | None:
    """Return the same chart, from zero up, of a share or a time that develops over releases; `what`: its name."""
    measured = [point for point in points if point.value is not None]
    if len(measured) < 2:
        return None
    low = min(point.low for point in measured if point.low is not None)
    high = max(point.high for point in measured if point.high is not None)
    width = max(_LEAST, _INDEX_LEFT + _INDEX_RIGHT + _INDEX_STEP * (len(points) - 1))
    across = Scale(0, len(points) - 1, _INDEX_LEFT, width - _INDEX_RIGHT)
    # No difference of less than a point fills the height
    y = Scale(0.0 if from_zero else min(low, high - 1), high or 1.0, _INDEX_TOP + _INDEX_HEIGHT, _INDEX_TOP)
    dots: list[Dot] = []
    lines: list[list[str]] = [[]]
    for index, point in enumerate(points):
        if point.value is None or point.low is None or point.high is None:
            lines.append([])
            continue
        x, height, value = across(index), y(point.value), f"{point.value:.1f}"
        dots.append(Dot(point.name, x, height, y(point.low), y(point.high), value, point.description))
        lines[-1].append(f"{x},{height}")
    grid = y.grid(lambda value: f"{value:.0f}" if high - low > 4 else f"{value:.1f}")
    described = ", ".join(f"{point.name} {point.value:.1f}" for point in measured)
    stretches = [" ".join(line) for line in lines if len(line) > 1]
    return IndexChart(width, _INDEX_TOP + _INDEX_HEIGHT + 34, stretches, dots, grid, f"{what}: {described}")


def describe(point: IndexPoint) -> str:
    """ "v5.6: 104.2, 95% CI 103.1 to 105.0, 18 of 20 benchmarks"."""
    if point.value is None:
        return f"{point.name}: no index, 0 of {point.total} benchmarks"
    text = f"{point.name}: {point.value:.1f}"
    if point.low != point.high:
        text += f", 95% CI {point.low:.1f} to {point.high:.1f}"
    return f"{text}, {point.matched} of {point.total} benchmarks"


# --- Overlay ---

_OVERLAY_TOP = 12
_FIRST = 5  # builds whose median is 100
MOST = 500  # points of a line


@dataclass(frozen=True, slots=True)
class CurveOverlay:
    """The paths of the lines, in the order of the curves; "" of a curve that can't be drawn. `ticks`: x with a date."""

    width: int
    height: int
    lines: Sequence[str]
    grid: Sequence[tuple[int, str]]
    ticks: Sequence[tuple[int, str]]
    left: int = _CURVE_LEFT


def overlay(curves: Sequence[Sequence[Build]]) -> CurveOverlay | None:
    """Return the chart; None if no curve has two builds. A curve that begins at zero has no line."""
    relative = [_relative(builds) for builds in curves]
    times = [moment for points in relative for moment, _ in points]
    up = scale([value for points in relative for _, value in points], _OVERLAY_TOP + _CURVE_HEIGHT, _OVERLAY_TOP)
    if up is None or min(times) == max(times):
        return None
    across = Scale(min(times), max(times), _CURVE_LEFT, _CURVE_WIDTH - _RIGHT)
    lines = ["L".join(f"{across(moment)} {up(value)}" for moment, value in points) for points in relative]
    ends = {build.at.timestamp(): f"{build.at:%Y-%m-%d}" for builds in curves for build in builds}
    return CurveOverlay(
        width=_CURVE_WIDTH,
        height=_OVERLAY_TOP + _CURVE_HEIGHT + 24,
        lines=[f"M{line}" if line else "" for line in lines],
        grid=up.grid(lambda value: f"{value:.0f}%"),
        ticks=[(across(moment), ends[moment]) for moment in (min(times), max(times))],
    )


def _relative(builds: Sequence[Build]) -> list[tuple[float, float]]:
    """Return times with levels in per cent of the first ones; every so many builds of a long curve."""
    first = median([build.level for build in builds[:_FIRST]]) if builds else 0.0
    if len(builds) < 2 or not first:
        return []
    step = -(-len(builds) // MOST)
    return [(build.at.timestamp(), 100 * build.level / first) for build in builds[::step]]


# --- Sparkline ---

_SPARKLINE_STEP, _DOT = 3, 2  # one sample every 3 units, the first 2 from the edge


def paths(spark: str) -> tuple[str, str, int]:
    """Return the two sides of a sparkline as SVG paths of dots, and its width; empty without samples.

    >>> paths("17,18|3")
    ('M2 19h0M5 20h0', 'M11 5h0', 12)
    """
    if not spark:
        return "", "", 0
    old, new = (side.split(",") for side in spark.split("|"))
    good = "".join(f"M{_DOT + _SPARKLINE_STEP * number} {int(height) + _DOT}h0" for number, height in enumerate(old))
    start = _DOT + _SPARKLINE_STEP * (len(old) + 1)
    bad = "".join(f"M{start + _SPARKLINE_STEP * number} {int(height) + _DOT}h0" for number, height in enumerate(new))
    return good, bad, start + _SPARKLINE_STEP * len(new) - _DOT


def described(spark: str) -> str:
    """Return the sparkline's text alternative."""
    if not spark:
        return ""
    old, new = (side.count(",") + 1 for side in spark.split("|"))
    return f"{old} before, {new} after"


def in_letters(heights: str, most: int = 24) -> str:
    """Return heights between 0 and 100 as a line of letters, the last `most` of them; "" for fewer than two.

    >>> in_letters("0,50,100")
    '▁▄█'
    """
    values = [int(height) for height in heights.split(",")[-most:]] if heights else []
    steps = [min(7, max(0, value) * 8 // 101) for value in values]
    return "".join("▁▂▃▄▅▆▇█"[step] for step in steps) if len(steps) > 1 else ""
