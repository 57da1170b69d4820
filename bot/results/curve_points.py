"""What a result adds to curves: the samples of every commit or kernel that it measured. Pure.

A commit stands at its date, until its place in the mainline is known (tracker/services/curves/places.py). A bisect
step, whose date nobody gives, stands beside the parent if it was good and beside the culprit if it was bad, which is
where it lies in the history.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from bot.results.bisect_result import CommitInfo, MeasurementData, Result
from bot.results.formats import perf_bisect_result
from bot.results.kernel_result import KernelMeasurement, KernelResult
from tracker.domain.curves.points import CurvePoint

MONITOR = "monitor"  # what a machine did meanwhile has a role of its own, and no curve
_BESIDE = timedelta(seconds=1)


def of_bisection(result: Result, measurement: MeasurementData, at: datetime, source: str) -> Iterator[CurvePoint]:
    """Yield the points of one measurement of a result. `at`: for commits without a date."""
    good, bad = result.parent or result.good, result.culprit or result.bad
    good_at, bad_at = _dates(good, bad, at)
    if measurement.old_samples:
        yield CurvePoint(good_at, good.sha, measurement.old_samples, source)
    if measurement.new_samples:
        yield CurvePoint(bad_at, bad.sha, measurement.new_samples, source)
    if measurement is result.headline:
        for sha, verdict, samples in _steps(result):
            if sha not in (good.sha, bad.sha):
                yield CurvePoint(good_at - _BESIDE if verdict == "good" else bad_at + _BESIDE, sha, samples, source)


def _dates(good: CommitInfo, bad: CommitInfo, at: datetime) -> tuple[datetime, datetime]:
    """Return the places of the two ends; the good one is before the bad one, whatever their clocks say."""
    bad_at = bad.date or at
    return min(good.date or bad_at, bad_at) - _BESIDE, bad_at


def _steps(result: Result) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    """Yield sha, verdict and samples of the steps, which only our own format has."""
    if result.format != perf_bisect_result.FORMAT:
        return
    payload: Mapping[str, Any] = json.loads(result.payload)
    for step in payload.get("bisect", {}).get("steps", ()):
        if step["verdict"] in ("good", "bad") and step.get("samples"):
            yield step["sha"], step["verdict"], tuple(map(float, step["samples"]))


def of_mail(old: tuple[str, float], new: tuple[str, float], at: datetime, source: str) -> Iterator[CurvePoint]:
    """Yield the points of a finding that a mailed report printed: sha and mean of both sides, each as one sample."""
    yield CurvePoint(at - _BESIDE, old[0], (old[1],), source)
    yield CurvePoint(at, new[0], (new[1],), source)


def of_kernel(result: KernelResult, measurement: KernelMeasurement, source: str) -> CurvePoint | None:
    """Return the point of one measurement of a kernel; a bare mean counts as one sample."""
    if measurement.role == MONITOR:
        return None
    kernel = result.kernel
    name = f"{kernel.name}/{kernel.variant}" if kernel.variant else kernel.name
    samples = measurement.samples or (measurement.side.mean,)
    return CurvePoint(kernel.committed_at or result.created_at, name, samples, source)
