"""A job of the lab: a request for a test, until a runner has handed in a result. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tracker.domain.statistics.change import change_pct
from tracker.domain.statistics.samples import SampleSummary, summarise
from tracker.domain.text import formats


class JobState(StrEnum):
    """waiting → claimed → done; or withdrawn, when the report does not wait for it any more."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    DONE = "done"
    WITHDRAWN = "withdrawn"


UNFINISHED = (JobState.WAITING, JobState.CLAIMED)


class JobOutcome(StrEnum):
    """How a job ended."""

    MEASURED = "measured"
    NOT_APPLIED = "does-not-apply"
    NOT_BUILT = "does-not-build"
    NOT_BOOTED = "does-not-boot"
    NOT_RUN = "test-fails"


SENTENCES = {
    JobOutcome.NOT_APPLIED: "it does not apply to {base}",
    JobOutcome.NOT_BUILT: "{base} does not build with it",
    JobOutcome.NOT_BOOTED: "{base} does not boot with it",
    JobOutcome.NOT_RUN: "the test fails on {base} with it",
}


@dataclass(frozen=True, slots=True)
class MeasuredMetric:
    """One metric of a job's result: the samples without the patch (old) and with it (new), as grading takes them."""

    name: str
    old_samples: tuple[float, ...]
    new_samples: tuple[float, ...]

    @property
    def old(self) -> SampleSummary:
        return summarise(self.old_samples)

    @property
    def new(self) -> SampleSummary:
        return summarise(self.new_samples)

    @property
    def change(self) -> float | None:
        """The metric's own change in per cent."""
        return change_pct(self.old.mean, self.new.mean)

    def __str__(self) -> str:
        change = "" if self.change is None else f" ({formats.signed_pct(self.change)})"
        means = f"{formats.number(self.old.mean)} → {formats.number(self.new.mean)}"
        return f"{self.name}: {means}{change}, {len(self.old_samples)} + {len(self.new_samples)} runs"


def metrics_of(result: Mapping[str, Any]) -> tuple[MeasuredMetric, ...]:
    """Return what a result says (perf-job-result/1, checked against its schema); none if nothing was measured."""
    return tuple(
        MeasuredMetric(each["metric"], tuple(map(float, each["without"])), tuple(map(float, each["with"])))
        for each in result.get("measurements", ())
    )


def measured_metrics(payload: str) -> tuple[MeasuredMetric, ...]:
    """Return what a stored result says."""
    return metrics_of(json.loads(payload)) if payload else ()
