"""Stored results put on curves: the samples of every commit or kernel that a result measured.

This is done after the intake, which is not slowed down by it, and it can be done again. A commit stands at its date,
until its place in the mainline is known (tracker/services/curves.py). A bisect step, whose date nobody gives, stands
beside the parent if it was good and beside the culprit if it was bad, which is where it lies in the history. A result
that today's code can't read is logged and is on no curve.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import QuerySet

from bot.results.formats import perf_bisect_result, perf_release_result
from bot.results.recognise import reread
from bot.results.values import CommitInfo, KernelMeasurement, KernelResult, MeasurementData, Result
from tracker.domain.curves import CurvePoint
from tracker.domain.text import scenario_key
from tracker.models import BisectResult, Finding, Machine, Metric, ReleaseResult, Scenario
from tracker.services import curves, database
from tracker.services.curve_changes import refresh_stale
from tracker.services.database import Lock

# --- Points of a result ---

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


# --- Stored results onto curves ---

MOST = 200  # results per transaction
Row = TypeVar("Row", BisectResult, ReleaseResult, Finding)
_Name = tuple[str, str, str]  # of metric, scenario and machine
_Points = Iterator[tuple[_Name, CurvePoint]]
log = logging.getLogger(__name__)


def extend_curves(now: datetime, most: int = 10_000) -> int:
    """Put results on curves that are not there yet, and look at these curves. Returns how many results there were."""
    done = 0
    while done < most and (count := _extend(BisectResult.objects.all(), _of_bisection)):
        done += count
    while done < most and (count := _extend(ReleaseResult.objects.select_related("kernel"), _of_kernel)):
        done += count
    mailed = Finding.objects.filter(result=None).select_related("report__culprit", "parent", "metric", "scenario")
    while done < most and (count := _extend(mailed.select_related("machine"), _of_mail)):
        done += count
    while refresh_stale(now):
        pass
    return done


@transaction.atomic
def _extend(rows: QuerySet[Row], points_of: Callable[[Row], _Points]) -> int:
    database.take(Lock.CURVES)  # before the rows are chosen: what another process is adding is not added again
    waiting = list(rows.filter(on_curves=False).order_by("pk")[:MOST])
    if not waiting:
        return 0
    points = [point for row in waiting for point in _readable(row, points_of)]
    curves.add(_by_curve(points))
    type(waiting[0])._default_manager.filter(pk__in=[row.pk for row in waiting]).update(on_curves=True)
    return len(waiting)


def _readable(row: Row, points_of: Callable[[Row], _Points]) -> list[tuple[_Name, CurvePoint]]:
    """Return the points of a result; none, with a log line, if today's code can't read it."""
    try:
        return list(points_of(row))
    except Exception as error:  # hostile input may raise anything; the other results are drawn
        log.warning("%s %s is on no curve: %s", type(row).__name__, row, error)
        return []


def _of_bisection(row: BisectResult) -> _Points:
    result = reread(row.format, row.payload, row.bad_sha, str(row))
    for run in result.runs:
        for measurement in run.measurements:
            name = (measurement.metric, scenario_key(run.suite, run.params), run.machine.id)
            if measurement.role != MONITOR:
                for point in of_bisection(result, measurement, row.created_at, f"result {row.pk}"):
                    yield name, point


def _of_kernel(row: ReleaseResult) -> _Points:
    result = perf_release_result.parse(json.loads(row.payload), str(row))
    for test in result.tests:
        for measurement in test.measured:
            if point := of_kernel(result, measurement, f"release result {row.pk}"):
                yield (measurement.metric, scenario_key(test.suite, test.params), test.machine.id), point


def _of_mail(row: Finding) -> _Points:
    name = (row.metric.name, row.scenario.key, row.machine.name)
    culprit, at = row.report.culprit, row.report.culprit.authored_at or row.report.reported_at
    if at and row.parent and row.old_mean is not None and row.new_mean is not None:
        sides = (row.parent.sha, row.old_mean), (culprit.sha, row.new_mean)
        for point in of_mail(*sides, at, f"report {culprit.sha10}"):
            yield name, point


def _by_curve(points: Sequence[tuple[_Name, CurvePoint]]) -> dict[curves.CurveKey, list[CurvePoint]]:
    """Return the points by the ids of what they name, which the intake has stored."""
    names = {name for name, _ in points}
    metrics = dict(Metric.objects.filter(name__in={triple[0] for triple in names}).values_list("name", "pk"))
    scenarios = dict(Scenario.objects.filter(key__in={triple[1] for triple in names}).values_list("key", "pk"))
    machines = dict(Machine.objects.filter(name__in={triple[2] for triple in names}).values_list("name", "pk"))
    grouped: dict[curves.CurveKey, list[CurvePoint]] = {}
    for (metric, scenario, machine), point in points:
        if metric in metrics and scenario in scenarios and machine in machines:
            grouped.setdefault((metrics[metric], scenarios[scenario], machines[machine]), []).append(point)
    return grouped
