"""A curve over builds as an SVG: samples as dots, means with their intervals, changes and releases as lines. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracker.domain.curves.builds import Build
from tracker.domain.scale import Scale
from tracker.domain.text.formats import number

_LEFT, _RIGHT, _TOP, _HEIGHT, _WIDTH = 64, 12, 26, 260, 1120
MOST_DOTS = 3000  # samples that are drawn one by one
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
class MarkLine:
    """A marked build as drawn; `y` is the height of its label, so that neighbours do not lie on each other."""

    mark: CurveMark
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class CurveChart:
    """The numbers of the SVG: paths of the samples, the means and the band of intervals; `ticks`: x with its date."""

    width: int
    height: int
    dots: str
    line: str
    band: str
    marks: Sequence[MarkLine]
    grid: Sequence[tuple[int, str]]
    ticks: Sequence[tuple[int, str]]
    left: int = _LEFT
    top: int = _TOP
    bottom: int = _TOP + _HEIGHT


def chart(builds: Sequence[Build], marks: Sequence[CurveMark] = ()) -> CurveChart | None:
    """Return the chart; None for fewer than two builds. Builds stand at equal distances, in their order."""
    if len(builds) < 2:
        return None
    shows_samples = sum(len(build.samples) for build in builds) <= MOST_DOTS
    values = [value for build in builds for value in (build.samples if shows_samples else (build.low, build.high))]
    values += [each for build in builds for each in (build.low, build.high)]
    across, step = Scale(0, len(builds) - 1, _LEFT, _WIDTH - _RIGHT), math.ceil(len(builds) / MOST_COLUMNS)
    up = Scale(min(values), max(values), _TOP + _HEIGHT, _TOP)
    columns = [(across(start), builds[start : start + step]) for start in range(0, len(builds), step)]
    upper = [f"{x} {up(max([build.high for build in part]))}" for x, part in columns]
    lower = [f"{x} {up(min([build.low for build in part]))}" for x, part in reversed(columns)]
    means = [f"{x} {up(sum([build.mean for build in part]) / len(part))}" for x, part in columns]
    dots = ""
    if shows_samples:
        dots = "".join(
            f"M{across(place)} {up(value)}h0" for place, build in enumerate(builds) for value in build.samples
        )
    return CurveChart(
        width=_WIDTH,
        height=_TOP + _HEIGHT + 24,
        dots=dots,
        line="M" + "L".join(means),
        band="M" + "L".join(upper + lower) + "z",
        marks=_lines({build.name: place for place, build in enumerate(builds)}, across, marks),
        grid=up.grid(number),
        ticks=_ticks(builds, across),
    )


def _lines(places: Mapping[str, int], across: Scale, marks: Sequence[CurveMark]) -> list[MarkLine]:
    lines: list[MarkLine] = []
    for mark in sorted((each for each in marks if each.build in places), key=lambda each: places[each.build]):
        x = across(places[mark.build])
        taken = {line.y for line in lines if x - line.x < _LABEL}
        lines.append(MarkLine(mark, x, 10 if 10 not in taken else 21))
    return lines


def _ticks(builds: Sequence[Build], across: Scale) -> list[tuple[int, str]]:
    """Return some builds with their dates, from the first to the last."""
    every = max(1, len(builds) // 8)
    last = len(builds) - 1
    return [(across(place), f"{builds[place].at:%Y-%m-%d}") for place in [*range(0, last - every // 2, every), last]]


def outline(heights: str, width: int = 220, height: int = 36) -> str:
    """Return a small chart as an SVG path, from heights between 0 and 100: "0,50,100"; "" without any."""
    values = [int(each) for each in heights.split(",")] if heights else []
    if len(values) < 2:
        return ""
    x, y = Scale(0, len(values) - 1, 2, width - 2), Scale(0, 100, height - 3, 3)
    return "M" + "L".join(f"{x(place)} {y(value)}" for place, value in enumerate(values))
