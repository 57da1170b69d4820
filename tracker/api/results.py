"""`/api/v1/results/17`: one bisect result, its outcome and its findings."""

from __future__ import annotations

from django.http import Http404, HttpRequest, JsonResponse
from django.urls import reverse

from tracker.pages.results import queries


def result(request: HttpRequest, pk: int) -> JsonResponse:
    """Return a result without its payload, which is large and which the lab already has."""
    try:
        page = queries.page(pk)
    except Http404 as missing:
        return JsonResponse({"error": str(missing)}, status=404)
    row = page.row
    findings = [
        {
            "metric": each.metric.name,
            "unit": each.metric.unit,
            "scenario": str(each.scenario),
            "machine": each.machine.name,
            "headline": each.headline,
            "verdict": each.verdict,
            "change_pct": each.change_pct,
            "change_pct_raw": each.change_pct_raw,
            "interval_pct": None if each.low_pct is None else [each.low_pct, each.high_pct],
            "p_value": each.p_value,
            "effect": each.effect,
            "old": {"mean": each.old_mean, "stddev_pct": each.old_stddev_pct, "n": each.old_runs},
            "new": {"mean": each.new_mean, "stddev_pct": each.new_stddev_pct, "n": each.new_runs},
        }
        for each in page.findings
    ]
    return JsonResponse(
        {
            "producer": row.producer,
            "id": row.external_id,
            "format": row.format,
            "outcome": row.outcome,
            "created_at": row.created_at,
            "received_at": row.received_at,
            "held": row.held.splitlines(),
            "note": row.note,
            "measured": row.measured,
            "report": reverse("report", args=[row.report.culprit.sha]) if row.report else None,
            "findings": findings,
        }
    )
