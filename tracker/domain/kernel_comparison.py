"""Kernels side by side, test by test: what each measured, and its change against the first one. Pure.

A test is one metric in one scenario on one machine. The first kernel is the baseline: changes are the metric's own,
in per cent of its mean. All tests of a comparison are graded at once, and each change gets a verdict. It is `same` if
it is not significant, or smaller than ALMOST, however significant; where no significance test was possible, the size
alone decides; without a direction it is `unknown`. Several results for one place are pooled: all samples together, or
the newest of bare means.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracker.domain.events import Grade
from tracker.domain.statistics import SampleSummary, grade_all, summarise, verdict_of

ALMOST = 1.0  # per cent: a smaller change counts as none, however significant it is


class ChangeVerdict(StrEnum):
    """The verdict of a comparison."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    SAME = "same"
    UNKNOWN = "unknown"  # it changed, but the direction is unknown


@dataclass(frozen=True, slots=True)
class Box:
    """A machine, with its hardware details as far as known."""

    name: str
    model: str = ""
    brand: str = ""
    cpus: int | None = None
    memory_bytes: int | None = None
    family: str = ""

    @property
    def memory(self) -> str:
        """ "256G"; "" if unknown."""
        if not self.memory_bytes:
            return ""
        gigabytes = self.memory_bytes / (1 << 30)
        return f"{gigabytes:.0f}G" if gigabytes >= 1 else f"{self.memory_bytes >> 20}M"

    @property
    def is_described(self) -> bool:
        """Whether anything is known of it but its name."""
        return bool(self.model or self.brand or self.cpus or self.memory_bytes)


@dataclass(frozen=True, slots=True)
class ComparedTest:
    """One metric in one scenario on one machine."""

    suite: str
    params: tuple[tuple[str, str], ...]
    box: Box
    metric: str
    unit: str
    direction: str

    @property
    def scenario(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.params)


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one kernel in a test. Samples are empty if only means were given."""

    side: SampleSummary
    samples: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        return self.side.mean


@dataclass(frozen=True, slots=True)
class Change:
    """How a kernel differs from the first. `pct`: the metric's own change, None from zero. `low` to `high`: the 95%
    bootstrap interval of `pct`, None without samples. `tested`: a significance test was possible; otherwise the size
    alone decides.
    """

    verdict: ChangeVerdict
    pct: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    tested: bool = False

    @property
    def percent(self) -> str:
        """ "-8.68%": two decimals, no trailing zeros; "" if there is no number."""
        if self.pct is None:
            return ""
        number = f"{self.pct:.2f}".rstrip("0").rstrip(".")
        return "0%" if number == "-0" else f"{number}%"

    @property
    def interval(self) -> str:
        """ "-9.1 to -8.2%", or ""."""
        return "" if self.low is None or self.high is None else f"{self.low:+.1f} to {self.high:+.1f}%"


@dataclass(frozen=True, slots=True)
class ComparisonLine:
    """A test over all kernels: `cells` in their order, None where nothing was measured; `changes` likewise, None for
    the first kernel and where either result is missing.
    """

    test: ComparedTest
    cells: tuple[Cell | None, ...]
    changes: tuple[Change | None, ...]

    @property
    def relative(self) -> tuple[float | None, ...]:
        """Each kernel's mean relative to the first as 100; None where either is missing, and for all kernels if any
        mean is zero or negative.
        """
        base = self.cells[0]
        if base is None or any(cell is not None and cell.mean <= 0 for cell in self.cells):
            return (None,) * len(self.cells)
        values = [100 * cell.mean / base.mean if cell else None for cell in self.cells]
        return tuple(value if value is not None and math.isfinite(value) else None for value in values)


@dataclass(frozen=True, slots=True)
class _Pair:  # as the statistics take them
    old: SampleSummary
    new: SampleSummary
    old_samples: Sequence[float]
    new_samples: Sequence[float]


def pooled(cells: Sequence[Cell]) -> Cell:
    """Combine the results for one place, oldest first: all samples pooled; of bare means, the newest."""
    samples = tuple(sample for cell in cells for sample in cell.samples)
    return Cell(summarise(samples), samples) if samples else cells[-1]


def lines(tests: Iterable[tuple[ComparedTest, Sequence[Cell | None]]]) -> list[ComparisonLine]:
    """Return every test with its changes, all of them graded at once."""
    table = [(test, tuple(cells)) for test, cells in tests]
    positions = [
        (row, column)
        for row, (_, cells) in enumerate(table)
        for column in range(1, len(cells))
        if cells[0] is not None and cells[column] is not None
    ]
    pairs = [
        _Pair(base.side, cell.side, base.samples, cell.samples)
        for row, column in positions
        if (base := table[row][1][0]) and (cell := table[row][1][column])
    ]
    directions = [table[row][0].direction for row, _ in positions]
    graded = grade_all(pairs, directions)
    changes: dict[tuple[int, int], Change] = {}
    for position, pair, direction, grade in zip(positions, pairs, directions, graded, strict=True):
        old, new, raw = pair.old.mean, pair.new.mean, grade.change_pct
        moved = old != new if raw is None else abs(raw) >= ALMOST
        same = grade.verdict is Grade.NOT_SIGNIFICANT or not moved
        verdict = ChangeVerdict.SAME if same else ChangeVerdict(verdict_of(old, new, direction).value)
        tested = grade.verdict is not Grade.NOT_TESTABLE
        changes[position] = Change(verdict, raw, grade.low_pct, grade.high_pct, grade.p_value, tested)
    return [
        ComparisonLine(test, cells, tuple(changes.get((row, column)) for column in range(len(cells))))
        for row, (test, cells) in enumerate(table)
    ]


def summary(test: ComparedTest, change: Change, kernel: str, base: str) -> str:
    """Describe a change as release reports do: "… on kernel v5.6 has -8.68% regression when comparing to v5.5"."""
    subject = f"{test.metric} on kernel {kernel}"
    if change.verdict is ChangeVerdict.SAME:
        return f"{subject} is almost the same as that in {base}"
    word = "change" if change.verdict is ChangeVerdict.UNKNOWN else change.verdict.value
    return f"{subject} has {f'{change.percent} ' if change.percent else 'a '}{word} when comparing to {base}"
