"""The result of a job, as a runner hands it in: perf-job-result/1. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bot.results.formats.schema import Schema
from tracker.domain.lab.jobs import JobOutcome, MeasuredMetric, metrics_of

_SCHEMA = Schema("perf-job-result-1")


@dataclass(frozen=True, slots=True)
class JobResult:
    """`base`: the kernel that was patched, as people name it; `detail`: what went wrong, a line."""

    lease: str
    outcome: JobOutcome
    base: str
    detail: str
    measurements: tuple[MeasuredMetric, ...]

    def of_metric(self, name: str) -> MeasuredMetric | None:
        return next((each for each in self.measurements if each.name == name), None)


def parse(payload: Any) -> JobResult:
    """Return a result. Raises RejectedInput with the pointer of each fault."""
    _SCHEMA.check(payload, "result")
    base = payload.get("base", {})
    return JobResult(
        lease=payload["lease"],
        outcome=JobOutcome(payload["outcome"]),
        base=base.get("describe") or str(base.get("sha", ""))[:12],
        detail=" ".join(payload.get("detail", "").split()),
        measurements=metrics_of(payload),
    )


def stored(payload: str) -> JobResult:
    """Return the result that a job keeps."""
    return parse(json.loads(payload))
