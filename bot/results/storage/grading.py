"""Grade the measurements of many results at once, each against the noise measured before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.results.bisect_result import MeasurementData, Result
from bot.results.storage.catalog import ResultCatalog
from bot.results.storage.graded import GradedMeasurement, Place
from tracker.domain.statistics import significance
from tracker.domain.statistics.significance import Graded, Noise
from tracker.models import Machine, Metric, NoiseHistory, Scenario
from tracker.services import bulk


def grade(results: Sequence[Result], things: ResultCatalog) -> list[list[GradedMeasurement]]:
    """Return the graded measurements of each result, in order. Stores the noise of every place, updated with them."""
    flat = [told for result in results for told in things.measurements(result)]
    graded = significance.grade_all([told[0] for told in flat], [told[1].direction for told in flat])
    noise = _noise(things)
    answers = iter([_measured(*told, grade, noise) for told, grade in zip(flat, graded, strict=True)])
    measured = [[next(answers) for run in result.runs for _ in run.measurements] for result in results]
    _save({each.place: noise[each.place] for one in measured for each in one})
    return measured


def _measured(
    told: MeasurementData,
    metric: Metric,
    scenario: Scenario,
    machine: Machine,
    graded: Graded,
    noise: dict[Place, Noise],
) -> GradedMeasurement:
    """Grade a measurement against the noise so far, then add its own to the noise."""
    place = (metric.id, scenario.id, machine.id)
    before = noise.get(place) or Noise()
    noise[place] = before.plus(told.old, told.new)
    return GradedMeasurement(told, metric, place, graded, significance.effect(graded.change_pct, before))


def _noise(things: ResultCatalog) -> dict[Place, Noise]:
    rows = NoiseHistory.objects.filter(
        metric__in=[row.pk for row in things.metrics.values()],
        scenario__in=[row.pk for row in things.scenarios.values()],
        machine__in=[row.pk for row in things.machines.values()],
    )
    columns = rows.values_list("metric_id", "scenario_id", "machine_id", "degrees", "squares")
    return {(metric, scenario, machine): Noise(n, s) for metric, scenario, machine, n, s in columns}


def _save(noise: Mapping[Place, Noise]) -> None:
    place = ("metric", "scenario", "machine")
    rows = [(*where, each.degrees, each.squares) for where, each in sorted(noise.items())]
    bulk.upsert(NoiseHistory, (*place, "degrees", "squares"), place, rows)
