"""Which variant is best in which test, how often, and by how much on average. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tracker.domain.kernel_comparison import Cell, ComparisonLine, Word, lines

FAR = 200.0  # a larger ratio, as a natural logarithm, counts as out of range
LEAD = 0.1  # per cent: averages that are closer than this count as equal


@dataclass(frozen=True, slots=True)
class TestWinner:
    """The variants, by position, that no other beats in a test: one is the winner, several are a tie."""

    line: ComparisonLine
    best: tuple[int, ...]

    @property
    def winner(self) -> int | None:
        return self.best[0] if len(self.best) == 1 else None


@dataclass(frozen=True, slots=True)
class Share:
    """How often one variant won; `average_pct`: its performance against the first one, the geometric mean over tests,
    plus is better; None if nothing can be averaged. Performance is the mean, or its reciprocal if lower is better.
    """

    wins: int
    pct: float
    average_pct: float | None


@dataclass(frozen=True, slots=True)
class WinTally:
    """The counts of some tests: `shares` in the order of the variants, and ties; together they make 100%."""

    tests: int
    shares: tuple[Share, ...]
    ties: int
    ties_pct: float
    uneven: int = 0  # tests left out of an average, since a value is zero or less, or out of range

    @property
    def best(self) -> int | None:
        """The variant with the best average; None if its lead is below LEAD, or if no test has a winner."""
        return self._led[0] if self._led and self._led[1] >= LEAD and self.ties < self.tests else None

    @property
    def lead_pct(self) -> float | None:
        """The lead of the best over the next best, in per cent of the latter."""
        return self._led[1] if self._led else None

    @property
    def _led(self) -> tuple[int, float] | None:
        known = [(share.average_pct, index) for index, share in enumerate(self.shares) if share.average_pct is not None]
        if len(known) < 2:
            return None
        (top, index), (second, _) = sorted(known, reverse=True)[:2]
        return index, 100 * ((100 + top) / (100 + second) - 1)


def outcomes(comparisons: Iterable[ComparisonLine]) -> list[TestWinner]:
    """Return the outcome of every test that all variants ran and whose direction is known. A variant that does not
    differ from the best one (not significant, or by less than 1%) ties with it.
    """
    comparable = [line for line in comparisons if line.test.direction in ("higher", "lower") and None not in line.cells]
    tops = [_top(line) for line in comparable]
    against_best = lines((line.test, _first(line.cells, top)) for line, top in zip(comparable, tops, strict=True))
    found = []
    for line, top, against in zip(comparable, tops, against_best, strict=True):
        others = [index for index in range(len(line.cells)) if index != top]
        tied = [
            index
            for index, change in zip(others, against.changes[1:], strict=True)
            if change is not None and change.word is Word.SAME
        ]
        found.append(TestWinner(line, (top, *tied)))
    return found


def _top(line: ComparisonLine) -> int:
    means = [cell.mean if cell else math.nan for cell in line.cells]
    sign = 1 if line.test.direction == "higher" else -1
    return max(range(len(means)), key=lambda index: sign * means[index])


def _first(cells: Sequence[Cell | None], index: int) -> list[Cell | None]:
    return [cells[index], *(cell for other, cell in enumerate(cells) if other != index)]


def tally(tests: Sequence[TestWinner], variants: int) -> WinTally:
    """Count the wins and the ties of some tests."""
    winners = [outcome.winner for outcome in tests]
    total = len(tests)
    ties = winners.count(None)
    averages = [average_pct([outcome.line for outcome in tests], index) for index in range(variants)]
    shares = tuple(
        Share(winners.count(index), _share(winners.count(index), total), averages[index]) for index in range(variants)
    )
    uneven = sum(any(_ratio(outcome.line, index) is None for index in range(variants)) for outcome in tests)
    return WinTally(total, shares, ties, _share(ties, total), uneven)


def _share(number: int, total: int) -> float:
    return 100 * number / total if total else 0.0


def average_pct(comparisons: Sequence[ComparisonLine], index: int) -> float | None:
    """Return by how many per cent a variant performs better than the first on average; None if not comparable."""
    found = speedup(comparisons, index)
    return None if found is None else 100 * (found - 1)


def speedup(comparisons: Sequence[ComparisonLine], index: int) -> float | None:
    """Return the performance as a multiple of the first kernel's, the geometric mean over the tests that both ran;
    means that are zero or negative, and metrics without a direction, are left out.
    """
    ratios = [ratio for line in comparisons if (ratio := _ratio(line, index)) is not None]
    return math.exp(fmean(ratios)) if ratios else None


def _ratio(line: ComparisonLine, index: int) -> float | None:
    """Return the logarithm of new over old, plus for better."""
    old, new = line.cells[0], line.cells[index]
    if old is None or new is None or old.mean <= 0 or new.mean <= 0 or line.test.direction == "unknown":
        return None
    log = math.log(new.mean) - math.log(old.mean)
    if abs(log) > FAR:
        return None
    return log if line.test.direction == "higher" else -log
