"""The headline finding of a report, in words. Pure."""

from __future__ import annotations

from tracker.domain.text import formats
from tracker.models import Finding


def headline(finding: Finding) -> str:
    """Return a sentence or two: the metric, its change, where it was measured, and the confidence."""
    return " ".join(part for part in (_movement(finding), _where(finding), _sureness(finding)) if part)


def _movement(finding: Finding) -> str:
    text = f"{finding.metric.name}{_better(finding.metric.direction)} changed"
    if finding.change is not None:
        text += f" by {formats.signed_pct(finding.change)}"
    if finding.verdict in ("regression", "improvement"):
        text += f" ({finding.verdict})"
    if finding.old_mean is not None and finding.new_mean is not None:
        unit = f" {finding.metric.unit}" if finding.metric.unit else ""
        text += f": {formats.number(finding.old_mean)} before, {formats.number(finding.new_mean)}{unit} after"
    return text + ","


def _better(direction: str) -> str:
    return f" ({direction} is better)" if direction in ("higher", "lower") else ""


def _where(finding: Finding) -> str:
    params = ", ".join(f"{name}={value}" for name, value in finding.scenario.params.items())
    test = f"{finding.scenario.suite} ({params})" if params else finding.scenario.suite
    runs = f", {finding.old_runs} and {finding.new_runs} runs" if finding.old_runs and finding.new_runs else ""
    return f"in {test} on {finding.machine.name}{runs}."


def _sureness(finding: Finding) -> str:
    text = formats.confidence(finding.low_pct, finding.high_pct, finding.p_value, finding.effect)
    return f"{text}." if text else "Confidence unknown: no samples."
