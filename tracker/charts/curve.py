"""A curve over builds as an SVG: samples as dots, means with their intervals, changes and releases as lines. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracker.domain.curves.builds import Build
from tracker.domain.formats import number
from tracker.domain.scale import Scale

_LEFT, _RIGHT, _TOP, _HEIGHT, _WIDTH = 64, 12, 26, 260, 1120
MOST_DOTS = 3000  # samples that are drawn one by one
MOST_COLUMNS = 1000  # beyond them, neighbouring builds share one: there are no more pixels
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
    places = [(across(place), build) for place, build in enumerate(builds)]
    columns = [places[start : start + step] for start in range(0, len(places), step)]
    upper = [f"{each[0][0]} {up(max(build.high for _, build in each))}" for each in columns]
    lower = [f"{each[0][0]} {up(min(build.low for _, build in each))}" for each in reversed(columns)]
    dots = "".join(f"M{x} {up(value)}h0" for x, build in places for value in build.samples) if shows_samples else ""
    return CurveChart(
        width=_WIDTH,
        height=_TOP + _HEIGHT + 24,
        dots=dots,
        line="M" + "L".join(f"{each[0][0]} {up(sum(build.mean for _, build in each) / len(each))}" for each in columns),
        band="M" + "L".join(upper + lower) + "z",
        marks=_lines({build.name: x for x, build in places}, marks),
        grid=up.grid(number),
        ticks=_ticks(places),
    )


def _lines(places: Mapping[str, int], marks: Sequence[CurveMark]) -> list[MarkLine]:
    lines: list[MarkLine] = []
    for mark in sorted((each for each in marks if each.build in places), key=lambda each: places[each.build]):
        x = places[mark.build]
        taken = {line.y for line in lines if x - line.x < _LABEL}
        lines.append(MarkLine(mark, x, 10 if 10 not in taken else 21))
    return lines


def _ticks(places: Sequence[tuple[int, Build]]) -> list[tuple[int, str]]:
    """Return some builds with their dates, from the first to the last."""
    every = max(1, len(places) // 8)
    chosen = [*places[: len(places) - every // 2 - 1 : every], places[-1]]
    return [(x, f"{build.at:%Y-%m-%d}") for x, build in chosen]


def outline(heights: str, width: int = 220, height: int = 36) -> str:
    """Return a small chart as an SVG path, from heights between 0 and 100: "0,50,100"; "" without any."""
    values = [int(each) for each in heights.split(",")] if heights else []
    if len(values) < 2:
        return ""
    x, y = Scale(0, len(values) - 1, 2, width - 2), Scale(0, 100, height - 3, 3)
    return "M" + "L".join(f"{x(place)} {y(value)}" for place, value in enumerate(values))
