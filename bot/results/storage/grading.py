"""Grade the measurements of many results at once, each against the noise measured before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.results.bisect_result import MeasurementData, Result
from bot.results.storage.catalog import ResultCatalog
from bot.results.storage.graded import GradedMeasurement, MeasurementKey
from tracker.domain.statistics import significance
from tracker.domain.statistics.significance import Graded, Noise
from tracker.models import Machine, Metric, NoiseHistory, Scenario
from tracker.services.sql import bulk


def grade(results: Sequence[Result], catalog: ResultCatalog) -> list[list[GradedMeasurement]]:
    """Return the graded measurements of each result, in order. Stores the noise of every place, updated with them."""
    flat = [item for result in results for item in catalog.measurements(result)]
    graded = significance.grade_all([item[0] for item in flat], [item[1].direction for item in flat])
    noise = _noise(catalog)
    answers = iter([_measured(*item, grade, noise) for item, grade in zip(flat, graded, strict=True)])
    measured = [[next(answers) for run in result.runs for _ in run.measurements] for result in results]
    _save({each.key: noise[each.key] for one in measured for each in one})
    return measured


def _measured(
    measurement: MeasurementData,
    metric: Metric,
    scenario: Scenario,
    machine: Machine,
    graded: Graded,
    noise: dict[MeasurementKey, Noise],
) -> GradedMeasurement:
    """Grade a measurement against the noise so far, then add its own to the noise."""
    key = (metric.id, scenario.id, machine.id)
    before = noise.get(key) or Noise()
    noise[key] = before.plus(measurement.old, measurement.new)
    return GradedMeasurement(measurement, metric, key, graded, significance.effect(graded.change_pct, before))


def _noise(catalog: ResultCatalog) -> dict[MeasurementKey, Noise]:
    rows = NoiseHistory.objects.filter(
        metric__in=[row.pk for row in catalog.metrics.values()],
        scenario__in=[row.pk for row in catalog.scenarios.values()],
        machine__in=[row.pk for row in catalog.machines.values()],
    )
    columns = rows.values_list("metric_id", "scenario_id", "machine_id", "degrees", "squares")
    return {(metric, scenario, machine): Noise(n, s) for metric, scenario, machine, n, s in columns}


def _save(noise: Mapping[MeasurementKey, Noise]) -> None:
    key_columns = ("metric", "scenario", "machine")
    rows = [(*key, each.degrees, each.squares) for key, each in sorted(noise.items())]
    bulk.upsert(NoiseHistory, (*key_columns, "degrees", "squares"), key_columns, rows)
