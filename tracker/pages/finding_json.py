"""A finding as JSON: one shape for a report's JSON, the API and the exports."""

from __future__ import annotations

from typing import Any

from tracker.models import Finding

# All that `finding_json` depends on.
FINDING_VERSION = (
    *("pk", "headline", "verdict", "change_pct", "change_pct_raw", "low_pct", "high_pct", "p_value", "effect"),
    *("old_mean", "old_stddev_pct", "old_runs", "old_samples"),
    *("new_mean", "new_stddev_pct", "new_runs", "new_samples"),
    *("metric__name", "metric__unit", "scenario__suite", "scenario__params", "machine__name"),
)


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return what is known of a finding. `change_pct`: plus is better; `change_pct_raw`: the metric's own change."""
    return {
        "metric": finding.metric.name,
        "unit": finding.metric.unit,
        "suite": finding.scenario.suite,
        "parameters": finding.scenario.params,
        "scenario": str(finding.scenario),
        "machine": finding.machine.name,
        "headline": finding.headline,
        "verdict": finding.verdict,
        "change_pct": finding.change_pct,
        "change_pct_raw": finding.change_pct_raw,
        "interval_pct": None if finding.low_pct is None else [finding.low_pct, finding.high_pct],
        "p_value": finding.p_value,
        "effect": finding.effect,
        "old": _side(finding.old_mean, finding.old_stddev_pct, finding.old_runs, finding.old_samples),
        "new": _side(finding.new_mean, finding.new_stddev_pct, finding.new_runs, finding.new_samples),
    }


def _side(mean: float | None, stddev_pct: float | None, runs: int | None, samples: list[float]) -> dict[str, Any]:
    return {"mean": mean, "stddev_pct": stddev_pct, "runs": runs, "samples": samples}
