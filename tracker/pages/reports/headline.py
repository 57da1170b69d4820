"""The headline finding of a report, in words. Pure."""

from __future__ import annotations

from tracker.charts.bisection import short
from tracker.models import Finding


def headline(finding: Finding) -> str:
    """Return a sentence or two: the metric, its change, where it was measured, and the confidence."""
    return " ".join(part for part in (_movement(finding), _where(finding), _sureness(finding)) if part)


def _movement(finding: Finding) -> str:
    change, raw = finding.change_pct, finding.change_pct_raw
    name = finding.metric.name
    if finding.verdict in ("regression", "improvement"):
        word = "worse" if finding.verdict == "regression" else "better"
        amount = f"{abs(change):.1f}% " if change is not None else ""
        text = f"{name} is {amount}{word}"
    else:
        text = f"{name} changed by {raw:+.1f}%" if raw is not None else f"{name} changed"
    if finding.old_mean is not None and finding.new_mean is not None:
        unit = f" {finding.metric.unit}" if finding.metric.unit else ""
        text += f": {short(finding.old_mean)} before, {short(finding.new_mean)}{unit} after"
    return text + ","


def _where(finding: Finding) -> str:
    params = ", ".join(f"{name}={value}" for name, value in finding.scenario.params.items())
    test = f"{finding.scenario.suite} ({params})" if params else finding.scenario.suite
    runs = f", {finding.old_runs} and {finding.new_runs} runs" if finding.old_runs and finding.new_runs else ""
    return f"in {test} on {finding.machine.name}{runs}."


def _sureness(finding: Finding) -> str:
    parts = []
    if finding.low_pct is not None and finding.high_pct is not None:
        parts.append(f"95% CI {finding.low_pct:+.1f} to {finding.high_pct:+.1f}%")
    if finding.p_value is not None:
        parts.append(chance(finding.p_value))
    if finding.effect is not None:
        parts.append(f"{finding.effect:.1f} times the usual noise")
    if not parts:
        return "Confidence unknown: no samples."
    return f"{', '.join(parts)}."


def chance(p: float) -> str:
    """Format a p-value: "p = 0.012", or "p < 0.0001" below that."""
    return f"p = {p:.2g}" if p >= 0.0001 else "p < 0.0001"
