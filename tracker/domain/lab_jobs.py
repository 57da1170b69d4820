"""A job of the lab: a request for a test, until a runner has handed in a result. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from tracker.domain import formats
from tracker.domain.statistics.change import change_pct
from tracker.domain.statistics.samples import summarise


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
    """One metric of a job's result: the samples without the patch, and with it."""

    name: str
    without: tuple[float, ...]
    with_patch: tuple[float, ...]

    @property
    def change(self) -> float | None:
        """The metric's own change in per cent."""
        return change_pct(summarise(self.without).mean, summarise(self.with_patch).mean)

    def __str__(self) -> str:
        means = (formats.number(summarise(each).mean) for each in (self.without, self.with_patch))
        change = "" if self.change is None else f" ({formats.signed_pct(self.change)})"
        return f"{self.name}: {' → '.join(means)}{change}, {len(self.without)} + {len(self.with_patch)} runs"


def measured_metrics(payload: str) -> list[MeasuredMetric]:
    """Return what a stored result (perf-job-result/1, checked when it came in) says; none if nothing was measured."""
    rows = json.loads(payload).get("measurements", []) if payload else []
    return [MeasuredMetric(each["metric"], tuple(each["without"]), tuple(each["with"])) for each in rows]
