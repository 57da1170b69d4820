"""The noise of curves for those who ask: intake, and findings, which keep their change in multiples of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from tracker.domain.curves.noise import CurveNoise
from tracker.domain.statistics.significance import effect
from tracker.models import Curve, Finding
from tracker.services import regrading, report_summary
from tracker.services.curves.storage import CurveKey

_MOVED = 0.05  # an effect that moves by less is left as it is, and no mail is composed again


def noise_at(places: Collection[CurveKey]) -> dict[CurveKey, CurveNoise]:
    """Return the known noise of places, in one query; a place without a history has none."""
    metrics, scenarios, machines = (sorted({key[part] for key in places}) for part in range(3))
    rows = Curve.objects.filter(metric__in=metrics, scenario__in=scenarios, machine__in=machines).exclude(noise={})
    found = rows.values_list("metric_id", "scenario_id", "machine_id", "noise")
    return {(metric, scenario, machine): CurveNoise(**noise) for metric, scenario, machine, noise in found}


def findings_on(curves: Sequence[Curve]) -> Mapping[int, list[Finding]]:
    """Return the findings that were measured where these curves are, by the curve's key, in one query."""
    places = {(each.metric_id, each.scenario_id, each.machine_id): each.pk for each in curves}
    metrics, scenarios, machines = (sorted({key[part] for key in places}) for part in range(3))
    rows = Finding.objects.filter(metric__in=metrics, scenario__in=scenarios, machine__in=machines)
    found: defaultdict[int, list[Finding]] = defaultdict(list)
    for each in rows.select_related("report__culprit").defer("old_samples", "new_samples"):
        if curve := places.get((each.metric_id, each.scenario_id, each.machine_id)):
            found[curve].append(each)
    return found


def update_findings(curves: Sequence[Curve], findings: Mapping[int, Sequence[Finding]]) -> None:
    """Store by how many times the noise known now these findings changed. Their unsent mails are composed again."""
    moved: list[Finding] = []
    for curve in curves:
        noise = CurveNoise(**curve.noise) if curve.noise else None
        for finding in findings.get(curve.pk, ()):
            if _update(finding, noise):
                moved.append(finding)
    Finding.objects.bulk_update(moved, ["effect", "noise_runs"], batch_size=200)
    heads = {each.report_id for each in moved if each.headline}
    report_summary.refresh(heads)
    regrading.outdate(heads - regrading.sent_reports(heads))


def _update(finding: Finding, noise: CurveNoise | None) -> bool:
    before = finding.effect
    finding.effect = effect(finding.change_pct_raw, noise.pct if noise else None)
    finding.noise_runs = noise.runs if noise and finding.effect is not None else None
    if before is None or finding.effect is None:
        return before is not finding.effect
    return abs(finding.effect - before) > _MOVED * before
