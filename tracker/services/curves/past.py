"""The past of one place, for the mail and the page of a report."""

from __future__ import annotations

from dataclasses import dataclass

from tracker.domain.curves.builds import builds_of
from tracker.domain.curves.curve_reading import read_curve
from tracker.domain.curves.history import StableHistory, history_before
from tracker.domain.curves.noise import LEAST_BUILDS
from tracker.models import BisectResult, Curve, Finding
from tracker.services.curves.known_noise import reported
from tracker.services.curves.storage import recent

_REPORTS = 500  # on one curve


@dataclass(frozen=True, slots=True)
class CurvePast:
    """The curve that a finding lies on, and how stable it was before; None where too little was measured."""

    curve: Curve
    history: StableHistory | None


def past_of(finding: Finding, commit: str) -> CurvePast | None:
    """Return the past of a finding before a commit, in four queries at most; None if there is no curve."""
    where = {"metric": finding.metric_id, "scenario": finding.scenario_id, "machine": finding.machine_id}
    curve = Curve.objects.filter(**where).first()
    if curve is None or curve.points < LEAST_BUILDS:
        return CurvePast(curve, None) if curve else None
    findings = Finding.objects.filter(**where).select_related("report__culprit").defer("old_samples", "new_samples")
    reading = read_curve(builds_of(recent(curve)), reported(findings.order_by("-pk")[:_REPORTS]))
    measured_at = None
    if finding.result_id and reading.place_of(commit) is None:  # its result is not on the curve yet
        result = BisectResult.objects.filter(pk=finding.result_id)
        measured_at = result.values_list("created_at", flat=True).first()
    return CurvePast(curve, history_before(reading, commit, measured_at))
