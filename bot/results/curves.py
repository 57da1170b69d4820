"""Put stored results on curves, after their intake, which is not slowed down by it; and it can be done again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from bot.results import curve_points
from bot.results.formats import perf_release_result
from bot.results.recognise import reread
from tracker.domain.curves.points import CurvePoint
from tracker.domain.keys import scenario_key
from tracker.models import BisectResult, Finding, Machine, Metric, ReleaseResult, Scenario
from tracker.services.curves import storage
from tracker.services.curves.refresh import refresh_stale
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

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
    locks.take(Lock.CURVES)  # before the rows are chosen: what another process is adding is not added again
    waiting = list(rows.filter(on_curves=False).order_by("pk")[:MOST])
    if not waiting:
        return 0
    found = [point for row in waiting for point in _readable(row, points_of)]
    storage.add(_by_curve(found))
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
        for each in run.measurements:
            name = (each.metric, scenario_key(run.suite, run.params), run.machine.id)
            if each.role != curve_points.MONITOR:
                for point in curve_points.of_bisection(result, each, row.created_at, f"result {row.pk}"):
                    yield name, point


def _of_kernel(row: ReleaseResult) -> _Points:
    result = perf_release_result.parse(json.loads(row.payload), str(row))
    for test in result.tests:
        for each in test.measured:
            if point := curve_points.of_kernel(result, each, f"release result {row.pk}"):
                yield (each.metric, scenario_key(test.suite, test.params), test.machine.id), point


def _of_mail(row: Finding) -> _Points:
    name = (row.metric.name, row.scenario.key, row.machine.name)
    culprit, at = row.report.culprit, row.report.culprit.authored_at or row.report.reported_at
    if at and row.parent and row.old_mean is not None and row.new_mean is not None:
        sides = (row.parent.sha, row.old_mean), (culprit.sha, row.new_mean)
        for point in curve_points.of_mail(*sides, at, f"report {culprit.sha10}"):
            yield name, point


def _by_curve(found: Sequence[tuple[_Name, CurvePoint]]) -> dict[storage.CurveKey, list[CurvePoint]]:
    """Return the points by the ids of what they name, which the intake has stored."""
    names = {name for name, _ in found}
    metrics = dict(Metric.objects.filter(name__in={each[0] for each in names}).values_list("name", "pk"))
    scenarios = dict(Scenario.objects.filter(key__in={each[1] for each in names}).values_list("key", "pk"))
    machines = dict(Machine.objects.filter(name__in={each[2] for each in names}).values_list("name", "pk"))
    grouped: dict[storage.CurveKey, list[CurvePoint]] = {}
    for (metric, scenario, machine), point in found:
        if metric in metrics and scenario in scenarios and machine in machines:
            grouped.setdefault((metrics[metric], scenarios[scenario], machines[machine]), []).append(point)
    return grouped
