"""The past of one place, for the mail and the page of a report."""

from __future__ import annotations

from dataclasses import dataclass

from tracker.domain.curves.builds import builds_of
from tracker.domain.curves.history import StableHistory, history_before
from tracker.domain.statistics.change_points import change_points
from tracker.models import Curve, Finding
from tracker.services.curves.storage import recent


@dataclass(frozen=True, slots=True)
class CurvePast:
    """The curve that a finding lies on, and how stable it was before; None where too little was measured."""

    curve: Curve
    history: StableHistory | None


def past_of(finding: Finding, commit: str) -> CurvePast | None:
    """Return the past of a finding before a commit, in two queries; None if there is no curve."""
    where = {"metric": finding.metric_id, "scenario": finding.scenario_id, "machine": finding.machine_id}
    curve = Curve.objects.filter(**where).first()
    if curve is None:
        return None
    builds = builds_of(recent(curve))
    changes = [each.index for each in change_points([build.level for build in builds])]
    return CurvePast(curve, history_before(builds, changes, commit, curve.noise.get("modes_pct")))
