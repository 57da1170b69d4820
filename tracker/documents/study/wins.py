"""Which variant is best in which test, how often, and by how much on the whole. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tracker.domain.kernel_comparison import Cell, ComparisonLine, Word, lines

FAR = 200.0  # what lies further apart, by the natural logarithm, is beyond all measure
LEAD = 0.1  # per cent: averages over many tests that are closer are told as equal


@dataclass(frozen=True, slots=True)
class TestWinner:
    """The variants, by their places, that no other beats in a test: one has won, several share it (a tie)."""

    line: ComparisonLine
    best: tuple[int, ...]

    @property
    def winner(self) -> int | None:
        return self.best[0] if len(self.best) == 1 else None


@dataclass(frozen=True, slots=True)
class Share:
    """How often one variant won; `average_pct`: its performance against the first one's, the geometric mean over tests,
    plus is better; None where nothing can be averaged. Performance is the mean, its reciprocal where lower is better.
    """

    wins: int
    pct: float
    average_pct: float | None


@dataclass(frozen=True, slots=True)
class WinTally:
    """Some tests: `shares` in the order of the variants, and the ties; together they are a hundred per cent."""

    tests: int
    shares: tuple[Share, ...]
    ties: int
    ties_pct: float
    uneven: int = 0  # tests that are in no average, since something in them is zero or less, or beyond measure

    @property
    def best(self) -> int | None:
        """The variant with the best average; None where no lead is as large as LEAD, or no test has a winner."""
        return self._led[0] if self._led and self._led[1] >= LEAD and self.ties < self.tests else None

    @property
    def lead_pct(self) -> float | None:
        """By how much the best one leads the next best, in per cent of that."""
        return self._led[1] if self._led else None

    @property
    def _led(self) -> tuple[int, float] | None:
        known = [(share.average_pct, place) for place, share in enumerate(self.shares) if share.average_pct is not None]
        if len(known) < 2:
            return None
        (top, place), (second, _) = sorted(known, reverse=True)[:2]
        return place, 100 * ((100 + top) / (100 + second) - 1)


def outcomes(told: Iterable[ComparisonLine]) -> list[TestWinner]:
    """Of every test that all variants ran, in a metric whose direction is known. A variant that can't be told from the
    best one (chance, or less than a per cent) shares with it.
    """
    fit = [line for line in told if line.test.direction in ("higher", "lower") and None not in line.cells]
    tops = [_top(line) for line in fit]
    turned = lines((line.test, _first(line.cells, top)) for line, top in zip(fit, tops, strict=True))
    found = []
    for line, top, against in zip(fit, tops, turned, strict=True):
        others = [place for place in range(len(line.cells)) if place != top]
        tied = [
            place
            for place, change in zip(others, against.changes[1:], strict=True)
            if change is not None and change.word is Word.SAME
        ]
        found.append(TestWinner(line, (top, *tied)))
    return found


def _top(line: ComparisonLine) -> int:
    means = [cell.mean if cell else math.nan for cell in line.cells]
    sign = 1 if line.test.direction == "higher" else -1
    return max(range(len(means)), key=lambda place: sign * means[place])


def _first(cells: Sequence[Cell | None], place: int) -> list[Cell | None]:
    return [cells[place], *(cell for other, cell in enumerate(cells) if other != place)]


def tally(some: Sequence[TestWinner], variants: int) -> WinTally:
    """Count the wins and the ties of some tests."""
    winners = [outcome.winner for outcome in some]
    total = len(some)
    ties = winners.count(None)
    averages = [average_pct([outcome.line for outcome in some], place) for place in range(variants)]
    shares = tuple(
        Share(winners.count(place), _share(winners.count(place), total), averages[place]) for place in range(variants)
    )
    uneven = sum(any(_ratio(outcome.line, place) is None for place in range(variants)) for outcome in some)
    return WinTally(total, shares, ties, _share(ties, total), uneven)


def _share(number: int, total: int) -> float:
    return 100 * number / total if total else 0.0


def average_pct(some: Sequence[ComparisonLine], place: int) -> float | None:
    """The average performance of a variant, in per cent more than the first one's; None where none is comparable."""
    found = speedup(some, place)
    return None if found is None else 100 * (found - 1)


def speedup(some: Sequence[ComparisonLine], place: int) -> float | None:
    """How many times as good as the first kernel, the geometric mean over the tests that both ran; means that are zero
    or negative, and metrics without a direction, are left out.
    """
    ratios = [ratio for line in some if (ratio := _ratio(line, place)) is not None]
    return math.exp(fmean(ratios)) if ratios else None


def _ratio(line: ComparisonLine, place: int) -> float | None:
    """The logarithm of new over old, plus for better."""
    old, new = line.cells[0], line.cells[place]
    if old is None or new is None or old.mean <= 0 or new.mean <= 0 or line.test.direction == "unknown":
        return None
    log = math.log(new.mean) - math.log(old.mean)
    if abs(log) > FAR:
        return None
    return log if line.test.direction == "higher" else -log
