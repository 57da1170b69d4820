"""The tests behind a point of the index: how each moved since the kernel before, with its curve."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tracker.domain.kernel_comparison import Cell, Change, ComparisonLine, Test, Word
from tracker.domain.performance_index.basket import Benchmark, at
from tracker.models import Curve, Kernel
from tracker.pages.index.queries import entries
from tracker.pages.index.queries import kernels as index_kernels
from tracker.pages.kernels import queries as comparison

MOST = 100


@dataclass(frozen=True, slots=True)
class MovedTest:
    """One test of a benchmark in both kernels. `curve`: the key of its curve; None if it has none."""

    benchmark: str
    line: ComparisonLine
    old: Cell
    new: Cell
    change: Change
    curve: int | None

    @property
    def is_single_run(self) -> bool:
        """Whether either side is one run, which shows no spread."""
        return self.old.side.n < 2 or self.new.side.n < 2

    @property
    def row_class(self) -> str:
        return self.change.word.value if self.change.word in (Word.IMPROVEMENT, Word.REGRESSION) else ""


def moved_tests(basket: Sequence[Benchmark], before: str, version: str) -> list[MovedTest]:
    """Return the tests that both kernels have of the basket, what moved most first; [] for the first kernel."""
    kernels = [each for each in comparison.named([before, version]) if each]
    if not before or len(kernels) < 2:
        return []
    held = at(basket, version)
    lines = comparison.compare(kernels, metrics={entry.metric for entry in held})
    counted = [(entry, line) for line in lines if (entry := entry_of(held, line)) and all(line.cells)]
    counted.sort(key=lambda pair: -abs(pair[1].changes[1].pct or 0.0) if pair[1].changes[1] else 0.0)
    curves = comparison.curves_of([line.test for _, line in counted[:MOST]])
    return [_moved(entry, line, curves) for entry, line in counted[:MOST]]


def entry_of(basket: Sequence[Benchmark], line: ComparisonLine) -> Benchmark | None:
    """Return the benchmark that a test counts in; None if it counts in none."""
    return next((each for each in basket if each.takes(line.test.metric, dict(line.test.params))), None)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tests of a comparison count in the index of a kernel."""

    version: str
    counted: int
    tests: int


def counted_in_index(kernels: Sequence[Kernel], lines: Collection[ComparisonLine]) -> Counted | None:
    """Return how much of a comparison of two releases the index counts; None of other kernels."""
    if len(kernels) != 2 or not set(kernels) <= set(index_kernels()):
        return None
    version = kernels[-1].name
    basket = at(entries(), version)
    both = [line for line in lines if all(line.cells)]
    return Counted(version, sum(entry_of(basket, line) is not None for line in both), len(both))


def _moved(entry: Benchmark, line: ComparisonLine, curves: Mapping[Test, Curve]) -> MovedTest:
    (old, new), change = line.cells, line.changes[1]
    assert old
    assert new
    assert change
    curve = curves.get(line.test)
    return MovedTest(entry.key, line, old, new, change, curve.pk if curve else None)
