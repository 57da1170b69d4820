"""A graded measurement and the finding it becomes, as values before they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from bot.results.bisect_result import MeasurementData
from tracker.domain.curves.noise import CurveNoise
from tracker.domain.statistics.significance import Graded, effect
from tracker.models import BisectResult, Metric

MeasurementKey = tuple[
    int, int, int
]  # ids of metric, scenario and machine; findings are compared only under the same key


@dataclass(frozen=True, slots=True)
class GradedMeasurement:
    """A measurement with its grade and the rows it refers to."""

    data: MeasurementData
    metric: Metric
    key: MeasurementKey
    graded: Graded
    noise: CurveNoise | None

    @property
    def effect(self) -> float | None:
        """The change in multiples of the usual noise; None if that is unknown."""
        return effect(self.graded.change_pct, self.noise.pct if self.noise else None)

    def summary(self) -> dict[str, Any]:
        """Return what is displayed of a measurement that doesn't become a finding."""
        return {
            "metric": self.data.metric,
            "old": self.data.old.mean,
            "new": self.data.new.mean,
            "change_pct": self.graded.change_pct,
            "verdict": self.graded.verdict.value,
        }


# The columns of a finding, in the order of `NewFinding.values`.
FIELDS = (
    *("report", "metric", "scenario", "machine", "parent", "base", "headline", "verdict"),
    *("change_pct", "change_pct_raw", "old_mean", "old_stddev_pct", "new_mean", "new_stddev_pct"),
    *("old_runs", "new_runs", "old_samples", "new_samples", "p_value", "low_pct", "high_pct"),
    *("effect", "noise_runs", "result"),
)


@dataclass(slots=True, eq=False)
class NewFinding:
    """A finding that is not stored yet. `row` gets its primary key before the findings are stored."""

    measured: GradedMeasurement
    report: int
    row: BisectResult
    parent: int | None
    base: str
    headline: bool = False

    @property
    def change_pct(self) -> float | None:
        return self.measured.graded.better_pct

    def values(self) -> tuple[Any, ...]:
        """Return the values of FIELDS as stored in the database."""
        data, graded = self.measured.data, self.measured.graded
        return (
            self.report,
            *self.measured.key,
            self.parent,
            self.base,
            self.headline,
            graded.verdict.value,
            graded.better_pct,
            graded.change_pct,
            data.old.mean,
            data.old.stddev_pct,
            data.new.mean,
            data.new.stddev_pct,
            data.old.n,
            data.new.n,
            orjson.dumps(data.old_samples).decode(),
            orjson.dumps(data.new_samples).decode(),
            graded.p_value,
            graded.low_pct,
            graded.high_pct,
            self.measured.effect,
            self.measured.noise.runs if self.measured.noise and self.measured.effect is not None else None,
            self.row.id,
        )
