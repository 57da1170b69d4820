"""`/api/v1/kernels/v6.12`: the measurements of a kernel."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from tracker.models import Measurement
from tracker.pages.kernels.queries import named

MOST = 20_000  # measurements per response


def kernel(request: HttpRequest, handle: str) -> JsonResponse:
    """Return the measurements of a kernel ("v6.12", "v6.12/2M"), oldest first; 404 if none was measured."""
    (found,) = named([handle])
    if found is None:
        return JsonResponse({"error": f"no kernel {handle[:100]} was measured"}, status=404)
    rows = Measurement.objects.filter(kernel=found).select_related("metric", "scenario", "machine").order_by("pk")
    measurements = [
        {
            "metric": each.metric.name,
            "unit": each.metric.unit,
            "direction": each.metric.direction,
            "role": each.role,
            "suite": each.scenario.suite,
            "params": each.scenario.params,
            "machine": each.machine.name,
            "mean": each.mean,
            "stddev": each.stddev,
            "n": each.runs,
            "samples": each.samples,
        }
        for each in rows[:MOST]
    ]
    return JsonResponse({"kernel": found.name, "variant": found.variant, "measurements": measurements})
