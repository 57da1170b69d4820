"""The result of a job, as a runner hands it in: perf-job-result/1. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bot.results.formats.schema import Schema
from tracker.domain.lab_jobs import JobOutcome
from tracker.domain.statistics.samples import SampleSummary, summarise

_SCHEMA = Schema("perf-job-result-1")


@dataclass(frozen=True, slots=True)
class SidesData:
    """One metric without and with the patch, as the grading takes it."""

    metric: str
    old_samples: tuple[float, ...]
    new_samples: tuple[float, ...]

    @property
    def old(self) -> SampleSummary:
        return summarise(self.old_samples)

    @property
    def new(self) -> SampleSummary:
        return summarise(self.new_samples)


@dataclass(frozen=True, slots=True)
class JobResult:
    """`base`: the kernel that was patched, as people name it; `detail`: what went wrong, a line."""

    lease: str
    outcome: JobOutcome
    base: str
    detail: str
    measurements: tuple[SidesData, ...]

    def of_metric(self, name: str) -> SidesData | None:
        return next((each for each in self.measurements if each.metric == name), None)


def parse(payload: Any) -> JobResult:
    """Return a result. Raises RejectedInput with the pointer of each fault."""
    _SCHEMA.check(payload, "result")
    base = payload.get("base", {})
    return JobResult(
        lease=payload["lease"],
        outcome=JobOutcome(payload["outcome"]),
        base=base.get("describe") or str(base.get("sha", ""))[:12],
        detail=" ".join(payload.get("detail", "").split()),
        measurements=tuple(
            SidesData(each["metric"], tuple(map(float, each["without"])), tuple(map(float, each["with"])))
            for each in payload.get("measurements", ())
        ),
    )


def stored(payload: str) -> JobResult:
    """Return the result that a job keeps."""
    return parse(json.loads(payload))
