"""A test as a bar chart, the first kernel as 100: SVG coordinates, and plain text for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.domain.kernel_comparison import ComparisonLine
from tracker.domain.scale import Scale

_WIDTH, _LEFT, _STEP, _THICK = 460, 96, 20, 12
_VALUE = 60  # room for the number beside a bar
_LETTERS = 36
_LABEL = 24  # characters of a kernel's name
_LESS = "(lower is better)"


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one kernel: its position and its end, and the ends of its interval if there is one."""

    label: str
    value: str
    y: int
    end: int
    low: int | None = None
    high: int | None = None

    @property
    def middle(self) -> int:
        return self.y + _THICK // 2

    @property
    def width(self) -> int:
        return self.end - _LEFT


@dataclass(frozen=True, slots=True)
class Bars:
    """The whole chart; `description`: for screen readers, `hundred`: where 100 is."""

    bars: Sequence[Bar]
    width: int
    height: int
    left: int
    thick: int
    hundred: int
    description: str
    note: str = ""


def bars(line: ComparisonLine, labels: Sequence[str]) -> Bars | None:
    """Return the chart; None if fewer than two kernels can be compared."""
    values = line.relative
    known = [each for each in values if each is not None and each >= 0]
    if len(known) < 2:
        return None
    ends = [_interval(line, index) for index in range(len(values))]
    top = max(100.0, *known, *(high for pair in ends if pair for high in pair))
    x = Scale(0, top, _LEFT, _WIDTH - _VALUE)
    drawn = []
    for index, (label, value, pair) in enumerate(zip(labels, values, ends, strict=True)):
        if value is None or value < 0:
            drawn.append(Bar(label, "not measured", 4 + index * _STEP, _LEFT))
        else:
            low, high = (x(max(0.0, pair[0])), x(max(0.0, pair[1]))) if pair else (None, None)
            drawn.append(Bar(label, f"{value:.1f}", 4 + index * _STEP, x(value), low, high))
    described = ", ".join(f"{bar.label} {bar.value}" for bar in drawn)
    note = _LESS if line.test.direction == "lower" else ""
    description = " ".join(filter(None, (f"{line.test.metric}, {labels[0]} as 100: {described}", note)))
    return Bars(drawn, _WIDTH, 8 + _STEP * (len(values) + bool(note)), _LEFT, _THICK, x(100), description, note)


def _interval(line: ComparisonLine, index: int) -> tuple[float, float] | None:
    """Return the interval of a kernel's value, with the first kernel as 100."""
    change = line.changes[index]
    if change is None or change.low is None or change.high is None:
        return None
    return 100 + change.low, 100 + change.high


def letters(line: ComparisonLine, labels: Sequence[str]) -> list[str]:
    """Return the chart as lines of text: "v5.6   91.3  #################"."""
    values = line.relative
    known = [each for each in values if each is not None and each >= 0]
    if len(known) < 2:
        return []
    labels = [label[:_LABEL] for label in labels]
    longest = max(map(len, labels))
    room = min(_LETTERS, 64 - longest)
    drawn = []
    for label, value in zip(labels, values, strict=True):
        if value is None or value < 0:
            drawn.append(f"{label:<{longest}}  not measured")
        else:
            drawn.append(f"{label:<{longest}}  {value:>7.1f}  {'#' * round(room * value / max(known))}".rstrip())
    return [*drawn, _LESS] if line.test.direction == "lower" else drawn
