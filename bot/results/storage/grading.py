"""Grade the measurements of many results at once, each against the noise that is known where it was measured."""

from __future__ import annotations

from collections.abc import Sequence

from bot.results.bisect_result import Result
from bot.results.storage.catalog import ResultCatalog
from bot.results.storage.graded import GradedMeasurement
from tracker.domain.statistics import significance
from tracker.services.curves.known_noise import noise_at


def grade(results: Sequence[Result], catalog: ResultCatalog) -> list[list[GradedMeasurement]]:
    """Return the graded measurements of each result, in order."""
    flat = [(*item[:2], (item[1].id, item[2].id, item[3].id)) for one in results for item in catalog.measurements(one)]
    graded = significance.grade_all([item[0] for item in flat], [item[1].direction for item in flat])
    noise = noise_at({place for *_, place in flat})
    answers = iter(
        [
            GradedMeasurement(measurement, metric, place, grade, noise.get(place))
            for (measurement, metric, place), grade in zip(flat, graded, strict=True)
        ]
    )
    return [[next(answers) for run in result.runs for _ in run.measurements] for result in results]
