"""A figure beside its budget: printed, and kept for the one table that `make bench` writes (table.py)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT = "PERFWORK_BENCH_FIGURES"  # names the file to which figures are added


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured. `budget`: the most, or with `at_least` the least, that `value` may be.

    `ratio`: how many times the yardstick, which ran beside it, takes less; None where there is nothing to run beside
    it. `spread`: the least and the most of several runs.
    """

    what: str
    value: float
    unit: str
    budget: float
    at_least: bool = False
    ratio: float | None = None
    yardstick: str = ""
    spread: tuple[float, float] | None = None

    @property
    def fits(self) -> bool:
        return self.value >= self.budget if self.at_least else self.value <= self.budget

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return what, measured, budget, ratio, and whether it is over."""
        runs = f" ({short(self.spread[0])} to {short(self.spread[1])})" if self.spread else ""
        beside = f"{short(self.ratio)} × {self.yardstick}" if self.ratio is not None else self.yardstick
        budget = f"{short(self.budget)} or {'more' if self.at_least else 'less'}"
        return self.what, f"{short(self.value)} {self.unit}".strip() + runs, budget, beside, "" if self.fits else "OVER"


def short(value: float) -> str:
    """Return a number with three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def figure(
    what: str,
    value: float,
    unit: str,
    budget: float,
    *,
    at_least: bool = False,
    ratio: float | None = None,
    yardstick: str = "",
    spread: Sequence[float] = (),
) -> None:
    """Print a figure, and keep it for the table. `spread`: what all runs measured."""
    runs = (min(spread), max(spread)) if spread else None
    made = Figure(what, value, unit, budget, at_least, ratio, yardstick, runs)
    cells = made.cells()
    print(f"  {cells[0]:56} {cells[1]:>28}   budget {cells[2]:16} {cells[3]} {cells[4]}".rstrip(), flush=True)
    if path := os.environ.get(KEPT):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(made)) + "\n")
