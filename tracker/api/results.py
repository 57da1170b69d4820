"""`/api/v1/results/17`: one bisect result, its outcome and its findings."""

from __future__ import annotations

from django.http import Http404, HttpRequest, JsonResponse
from django.urls import reverse

from tracker.pages.finding_json import finding_json
from tracker.pages.results import queries


def result(request: HttpRequest, pk: int) -> JsonResponse:
    """Return a result without its payload, which is large and which the lab already has."""
    try:
        page = queries.page(pk)
    except Http404 as missing:
        return JsonResponse({"error": str(missing)}, status=404)
    row = page.row
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
            "findings": [finding_json(each) for each in page.findings],
        }
    )
