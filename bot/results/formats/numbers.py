"""Samples, as shared by the adapters: number checks, summaries, and the choice of the headline. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.results.bisect_result import MeasurementData
from bot.results.errors import RejectedInput
from tracker.domain.metrics.direction import direction_of
from tracker.domain.statistics.change import change_pct
from tracker.domain.statistics.samples import SampleSummary, summarise

MAX_SAMPLES = 100_000  # per side
_NUMBERS = frozenset({int, float})  # bool is neither
_MONITORS = 100  # kept whether they moved or not; of more only those that moved


def summary(samples: Sequence[Any], where: str) -> tuple[SampleSummary, tuple[float, ...]]:
    """Return the summary of samples, and the samples as floats. Raise RejectedInput for none or too many."""
    if len(samples) > MAX_SAMPLES:
        raise RejectedInput(where, f"expected at most {MAX_SAMPLES} samples, found {len(samples)}")
    if not samples:
        raise RejectedInput(where, "expected at least one sample, found none")
    all_numbers(samples, where)
    try:
        numbers = tuple(map(float, samples))
    except OverflowError:
        raise RejectedInput(where, "expected numbers up to 1e308, found a larger one") from None
    return finite(summarise(numbers), where), numbers


def all_numbers(values: Sequence[Any], where: str) -> None:
    """Raise RejectedInput if a value is neither an int nor a float."""
    if not _NUMBERS.issuperset(map(type, values)):
        odd = next(each for each in values if type(each) not in _NUMBERS)
        raise RejectedInput(where, f"expected numbers only, found {str(odd)[:40]!r} among them")


def finite(side: SampleSummary, where: str) -> SampleSummary:
    """Return the side. Raise RejectedInput if its mean or standard deviation is not finite."""
    if not math.isfinite(side.mean + (side.stddev or 0.0)):
        raise RejectedInput(where, "expected numbers whose mean and standard deviation are finite")
    return side


def measurement(metric: str, unit: str, old: Sequence[Any], new: Sequence[Any], where: str) -> MeasurementData:
    """Return a metric with its samples, as a monitor with unknown direction."""
    old_side, old_samples = summary(old, f"{where}, parent")
    new_side, new_samples = summary(new, f"{where}, culprit")
    return MeasurementData(metric, unit, "unknown", "monitor", old_side, new_side, old_samples, new_samples)


def with_roles(measured: Sequence[MeasurementData], suite: str) -> tuple[MeasurementData, ...]:
    """Assign the roles that an input lacks: the suite's own metrics are KPIs, and one of them is the headline.

    The headline is the metric that moved most, preferably one that is not a counter of time(1), whose direction is
    known and whose sides don't overlap. Of more than 100 monitors, the 200 that moved most are kept.
    """
    own = [each for each in measured if each.metric.startswith(f"{suite}.")]
    kept = [each for each in measured if not each.metric.startswith(f"{suite}.")] if own else []
    own = own or list(measured)
    headline = max(own, key=lambda each: _headline_rank(each, suite))
    if len(kept) > _MONITORS:
        kept = sorted((each for each in kept if _moved(each)), key=_distance, reverse=True)[: 2 * _MONITORS]
    kpis = (replace(each, role="kpi") for each in own if each is not headline)
    return (replace(headline, role="headline"), *kpis, *kept)


def _headline_rank(each: MeasurementData, suite: str) -> tuple[bool, bool, bool, float]:
    known = direction_of(each.metric, suite) != "unknown"
    return (".time." not in each.metric, known, _moved(each), _distance(each))


def _moved(each: MeasurementData) -> bool:
    old, new = each.old_samples, each.new_samples
    return max(min(old), min(new)) > min(max(old), max(new))


def _distance(each: MeasurementData) -> float:
    return abs(change_pct(each.old.mean, each.new.mean) or 0.0)


def finite_number(text: str) -> float:
    """Parse a finite decimal number. Raise ValueError for anything else ("nan", "1_000")."""
    number = float(text)
    if not math.isfinite(number) or "_" in text or not text.isascii():
        raise ValueError(text)
    return number
