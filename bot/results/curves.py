"""Stored results put on curves: the samples of every commit or kernel that a result measured.

This is done after the intake, which is not slowed down by it, and it can be done again. A commit stands at its date,
until its place in the mainline is known (tracker/services/curves.py). A bisect step, whose date nobody gives, stands
beside the parent if it was good and beside the culprit if it was bad, which is where it lies in the history. A result
that today's code can't read is logged and is on no curve.
"""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from bot.results.formats import perf_bisect_result, perf_release_result
from bot.results.recognise import reread
from tracker.domain.curves import CurvePoint
from tracker.domain.text import scenario_key
from tracker.models import BisectResult, Finding, Machine, Metric, ReleaseResult, Scenario
from tracker.services import curves, database
from tracker.services.curve_changes import refresh_stale
from tracker.services.database import Lock

log = logging.getLogger(__name__)

MONITOR = "monitor"  # what a machine did meanwhile has a role of its own, and no curve
MOST = 200  # results per transaction
_BESIDE = timedelta(seconds=1)
Row = TypeVar("Row", BisectResult, ReleaseResult, Finding)
_Name = tuple[str, str, str]  # of metric, scenario and machine
_Points = Iterator[tuple[_Name, CurvePoint]]


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
    points: list[tuple[_Name, CurvePoint]] = []
    for row in waiting:
        try:
            points += list(points_of(row))
        except Exception as error:  # hostile input may raise anything; the other results are drawn
            log.warning("%s %s is on no curve: %s", type(row).__name__, row, error)
    # By the ids of what they name, which the intake has stored
    names = {name for name, _ in points}
    metrics = dict(Metric.objects.filter(name__in={triple[0] for triple in names}).values_list("name", "pk"))
    scenarios = dict(Scenario.objects.filter(key__in={triple[1] for triple in names}).values_list("key", "pk"))
    machines = dict(Machine.objects.filter(name__in={triple[2] for triple in names}).values_list("name", "pk"))
    by_curve: dict[curves.CurveKey, list[CurvePoint]] = {}
    for (metric, scenario, machine), point in points:
        if metric in metrics and scenario in scenarios and machine in machines:
            by_curve.setdefault((metrics[metric], scenarios[scenario], machines[machine]), []).append(point)
    curves.add(by_curve)
    type(waiting[0])._default_manager.filter(pk__in=[row.pk for row in waiting]).update(on_curves=True)
    return len(waiting)


def _of_bisection(row: BisectResult) -> _Points:
    result, source = reread(row.format, row.payload, row.bad_sha, str(row)), f"result {row.pk}"
    good, bad = result.parent or result.good, result.culprit or result.bad
    bad_at = bad.date or row.created_at
    good_at = min(good.date or bad_at, bad_at) - _BESIDE  # before the bad one, whatever their clocks say
    for run in result.runs:
        for measurement in run.measurements:
            name = (measurement.metric, scenario_key(run.suite, run.params), run.machine.id)
            if measurement.role == MONITOR:
                continue
            if measurement.old_samples:
                yield name, CurvePoint(good_at, good.sha, measurement.old_samples, source)
            if measurement.new_samples:
                yield name, CurvePoint(bad_at, bad.sha, measurement.new_samples, source)
            if measurement is not result.headline or result.format != perf_bisect_result.FORMAT:
                continue  # only our own format has steps
            for step in json.loads(result.payload).get("bisect", {}).get("steps", ()):
                sha, verdict, samples = step["sha"], step["verdict"], step.get("samples")
                if verdict in ("good", "bad") and samples and sha not in (good.sha, bad.sha):
                    at = good_at - _BESIDE if verdict == "good" else bad_at + _BESIDE
                    yield name, CurvePoint(at, sha, tuple(map(float, samples)), source)


def _of_kernel(row: ReleaseResult) -> _Points:
    result = perf_release_result.parse(json.loads(row.payload), str(row))
    kernel = result.kernel
    version = f"{kernel.name}/{kernel.variant}" if kernel.variant else kernel.name
    for test in result.tests:
        for measurement in test.measurements:
            if measurement.role != MONITOR:
                samples = measurement.samples or (measurement.side.mean,)  # a bare mean counts as one sample
                at, source = kernel.committed_at or result.created_at, f"release result {row.pk}"
                name = (measurement.metric, scenario_key(test.suite, test.params), test.machine.id)
                yield name, CurvePoint(at, version, samples, source)


def _of_mail(row: Finding) -> _Points:
    """Yield the points of a finding that a mailed report printed: the mean of each side, as one sample."""
    name = (row.metric.name, row.scenario.key, row.machine.name)
    culprit, at = row.report.culprit, row.report.culprit.authored_at or row.report.reported_at
    if at and row.parent and row.old_mean is not None and row.new_mean is not None:
        source = f"report {culprit.sha10}"
        yield name, CurvePoint(at - _BESIDE, row.parent.sha, (row.old_mean,), source)
        yield name, CurvePoint(at, culprit.sha, (row.new_mean,), source)
