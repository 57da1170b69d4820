"""The noise of curves for those who ask: intake, and findings, which keep their change in multiples of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db.models import Exists, OuterRef, Q

from tracker.domain.curves.curve_reading import ReportedChange
from tracker.domain.curves.noise import CurveNoise
from tracker.domain.statistics.significance import effect
from tracker.models import Curve, Finding, Report
from tracker.services.curves.storage import CurveKey
from tracker.services.reports import regrading, report_summary

_MOVED = 0.05  # an effect that moves by less is left as it is, and no mail is composed again


def noise_at(places: Collection[CurveKey]) -> dict[CurveKey, CurveNoise]:
    """Return the known noise of places, in one query; a place without a history has none."""
    rows = Curve.objects.filter(_around(places)).exclude(noise={})
    found = rows.values_list("metric_id", "scenario_id", "machine_id", "noise")
    known = ((key, noise) for *key, noise in found.iterator(chunk_size=1000))
    return {place: CurveNoise(**noise) for key, noise in known if (place := tuple(key)) in places}  # type: ignore[misc]


def findings_on(curves: Sequence[Curve]) -> Mapping[int, list[Finding]]:
    """Return the findings that were measured where these curves are, by the curve's key.

    Their reports are locked, in the order of their keys, as everybody does who writes findings and reports.
    """
    places = {(each.metric_id, each.scenario_id, each.machine_id): each.pk for each in curves}
    here = Curve.objects.filter(
        pk__in=list(places.values()),
        metric=OuterRef("metric"),
        scenario=OuterRef("scenario"),
        machine=OuterRef("machine"),
    )
    rows = Finding.objects.filter(_around(places), Exists(here)).defer("old_samples", "new_samples")
    findings = list(rows.order_by("pk"))
    locked = Report.objects.select_for_update(of=("self",)).select_related("culprit").order_by("pk")
    reports = {each.pk: each for each in locked.filter(pk__in={finding.report_id for finding in findings})}
    found: defaultdict[int, list[Finding]] = defaultdict(list)
    for each in findings:
        each.report = reports[each.report_id]
        found[places[each.metric_id, each.scenario_id, each.machine_id]].append(each)
    return found


def _around(places: Collection[CurveKey]) -> Q:
    """Return a condition that an index serves, and that holds at all of these places; and at some others."""
    metrics, scenarios, machines = (sorted({key[part] for key in places}) for part in range(3))
    return Q(metric__in=metrics, scenario__in=scenarios, machine__in=machines)


def reported(findings: Iterable[Finding]) -> list[ReportedChange]:
    """Return the changes that these findings, with their reports and culprits, measured."""
    return [change for each in findings if (change := reported_change(each))]


def reported_change(finding: Finding) -> ReportedChange | None:
    """Return the change that a finding measured; None without two different means."""
    if finding.old_mean is None or finding.new_mean is None or finding.old_mean == finding.new_mean:
        return None
    culprit = finding.report.culprit
    source = f"result {finding.result_id}" if finding.result_id else f"report {culprit.sha10}"
    return ReportedChange(culprit.sha, finding.old_mean, finding.new_mean, source)


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
