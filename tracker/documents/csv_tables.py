"""Tables for spreadsheets and programs: CSV (RFC 4180), made line by line as it is sent. Pure.

The first line has the names of the columns, which docs/api.md explains. Times are in UTC by ISO 8601. A number has as
many digits as its precision: two of those in which it may be wrong (`digits`), or six where that is not known. What a
spreadsheet would run as a formula has an apostrophe before it.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeVar

from tracker.domain.curves import Build
from tracker.domain.kernel_comparison import Cell, Change, ComparisonLine
from tracker.domain.performance_index import Contribution, IndexPoint
from tracker.domain.text import safe_cell

Row = TypeVar("Row")
Columns = Mapping[str, Callable[[Row], object]]
_AT_ONCE = 200  # lines per piece: thousands of small writes cost more than the lines


def digits(value: float | None, error: float | None = None) -> Decimal | None:
    """Return a number with two of the digits in which it may be off by `error`, or with six significant ones.

    A whole number without an error stays whole.

    >>> [str(digits(*pair)) for pair in ((-30.51234, 0.42), (184436.2371, 1200), (0.0000123456789,), (1e300, 1e-300))]
    ['-30.51', '184436', '0.0000123457', '1E+300']
    >>> str(digits(-0.4, 20)), str(digits(184436237.0))
    ('0', '184436237')
    """
    if value is None or not math.isfinite(value):
        return None
    is_known = error is not None and 0 < error < math.inf and abs(value) < _LARGEST
    if not is_known and value == int(value) and abs(value) < _LARGEST:
        return Decimal(int(value))
    decimals = max(0, 1 - math.floor(math.log10(error))) if error is not None and is_known else _MOST_DECIMALS + 1
    if value and decimals <= _MOST_DECIMALS:  # no more digits than a float has
        decimals = min(decimals, max(0, _MOST_DECIMALS - 1 - math.floor(math.log10(abs(value)))))
    number = Decimal(f"{value:.{decimals}f}" if decimals <= _MOST_DECIMALS else f"{value:.6g}")
    return number if number else abs(number)  # no minus before a zero


_LARGEST, _MOST_DECIMALS = 1e15, 15


def half(low: float | None, high: float | None) -> float | None:
    """Return by how much a value may be off that lies between these."""
    return None if low is None or high is None else abs(high - low) / 2


def csv_lines(columns: Columns[Row], rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield a table in pieces of some lines, the names of the columns first."""
    values = ([_cell(value(row)) for value in columns.values()] for row in rows)
    lines: Iterator[Sequence[object]] = chain([list(columns)], values)
    while piece := list(islice(lines, _AT_ONCE)):
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerows(piece)
        yield out.getvalue().encode("utf-8", "replace")


class Numbers(str):
    """Numbers of our own between blanks: the minus of the first does not begin a formula."""


def _cell(value: object) -> object:
    if isinstance(value, Numbers):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return digits(value)
    return "" if value is None else safe_cell(value)


# --- Reports ---


Value = Callable[[Mapping[str, Any]], object]


def _own(*names: str) -> dict[str, Value]:
    return {name: itemgetter(name) for name in names}


def _of_change(name: str) -> Value:
    return lambda row: digits(row[name], half(row["low"], row["high"]))


def _of_fix(name: str) -> Value:
    return lambda row: row["fix"][name]


# Of a report as `report_json` returns it, with `section`, `culprit_author`, `low`, `high` and `silence_days`.
REPORTS: Columns[Mapping[str, Any]] = {
    **_own("section", "culprit", "culprit_title", "culprit_author", "author", "subsystem", "verdict", "state"),
    **_own("status", "awaited", "awaited_since", "silence_days", "metric", "suite", "scenario", "machine", "base"),
    "change": _of_change("change"),
    "change_low": _of_change("low"),
    "change_high": _of_change("high"),
    "change_pct": _of_change("change_pct"),
    "noise_pct": lambda row: digits(row["noise_pct"], row["noise_pct"]),
    **_own("landing"),
    **{f"fix_{name}": _of_fix(name) for name in ("sha", "title", "landing")},
    **_own("reported_by", "reporter", "reported_at", "responded_at", "changed_at", "closed_at", "url"),
}


# --- Findings ---


def _of_finding(name: str) -> Value:
    return lambda row: digits(row[name], half(*(row["interval_pct"] or (None, None))))


def _end(place: int) -> Value:
    return lambda row: (ends := row["interval_pct"]) and digits(ends[place], half(*ends))


def _sides() -> Iterator[tuple[str, Value]]:
    for side in ("old", "new"):
        yield f"{side}_mean", lambda row, side=side: _mean(**row[side])  # type: ignore[misc]
        yield f"{side}_stddev_pct", lambda row, side=side: row[side]["stddev_pct"]  # type: ignore[misc]
        yield f"{side}_runs", lambda row, side=side: row[side]["runs"]  # type: ignore[misc]
        yield f"{side}_samples", lambda row, side=side: _joined(row[side]["samples"] or ())  # type: ignore[misc]


def _mean(mean: float | None, stddev_pct: float | None, **rest: object) -> Decimal | None:
    return digits(mean, abs(mean) * stddev_pct / 100 if mean is not None and stddev_pct else None)


def _joined(samples: Iterable[float]) -> Numbers:
    return Numbers(" ".join(f"{sample:.10g}" for sample in samples))


# Of a finding as `finding_json` returns it, with `report`, its culprit's sha.
FINDINGS: Columns[Mapping[str, Any]] = {
    **_own("report", "metric", "unit", "suite", "scenario", "machine", "headline", "verdict"),
    "change": _of_finding("change_pct_raw"),
    "change_low": _end(0),
    "change_high": _end(1),
    "change_pct": _of_finding("change_pct"),
    "p_value": lambda row: row["p_value"],
    "effect": lambda row: digits(row["effect"], row["effect"]),
    **dict(_sides()),
}


# --- Curves ---

BUILDS: Columns[Build] = {
    "build": lambda build: build.name,
    "at": lambda build: build.at,
    "runs": lambda build: len(build.samples),
    "mean": lambda build: digits(build.mean, half(build.low, build.high)),
    "mean_low": lambda build: digits(build.low, half(build.low, build.high)),
    "mean_high": lambda build: digits(build.high, half(build.low, build.high)),
    "median": lambda build: build.level,
    "samples": lambda build: _joined(build.samples),
}


# --- Kernels side by side ---

Measured = tuple[ComparisonLine, str, Cell, Change | None]

COMPARISON: Columns[Measured] = {
    "kernel": lambda row: row[1],
    "metric": lambda row: row[0].test.metric,
    "unit": lambda row: row[0].test.unit,
    "direction": lambda row: row[0].test.direction,
    "suite": lambda row: row[0].test.suite,
    "scenario": lambda row: row[0].test.scenario,
    "machine": lambda row: row[0].test.box.name,
    "mean": lambda row: digits(row[2].mean, row[2].side.stddev),
    "stddev": lambda row: digits(row[2].side.stddev, row[2].side.stddev),
    "runs": lambda row: row[2].side.n,
    "verdict": lambda row: row[3].verdict.value if row[3] else "",
    "change": lambda row: digits(row[3].pct, half(row[3].low, row[3].high)) if row[3] else None,
    "change_low": lambda row: digits(row[3].low, half(row[3].low, row[3].high)) if row[3] else None,
    "change_high": lambda row: digits(row[3].high, half(row[3].low, row[3].high)) if row[3] else None,
    "p_value": lambda row: row[3].p if row[3] else None,
    "samples": lambda row: _joined(row[2].samples),
}


def measured(lines: Iterable[ComparisonLine], kernels: Sequence[str]) -> Iterator[Measured]:
    """Yield a row for each test and kernel that ran it; the first kernel has no change."""
    for line in lines:
        for kernel, cell, change in zip(kernels, line.cells, line.changes, strict=True):
            if cell:
                yield line, kernel, cell, change


# --- The index ---


def _of_index(name: str) -> Callable[[IndexPoint], object]:
    return lambda point: digits(getattr(point, name), half(point.low, point.high))


INDEX: Columns[IndexPoint] = {
    "kernel": lambda point: point.name,
    "index": _of_index("value"),
    "index_low": _of_index("low"),
    "index_high": _of_index("high"),
    "benchmarks": lambda point: point.matched,
    "basket": lambda point: point.total,
    "chained_from": lambda point: point.against,
    "left_out": lambda point: "; ".join(f"{key}: {why}" for key, why in point.missing),
    "note": lambda point: point.note,
}

CONTRIBUTIONS: Columns[Contribution] = {
    "benchmark": lambda part: part.key,
    "points": lambda part: part.points,
    "change_pct": lambda part: part.pct,
    "since": lambda part: part.since,
    "step_pct": lambda part: part.step_pct,
    "weight_pct": lambda part: part.share_pct,
    "tests": lambda part: part.setups,
}
