"""`/kernel/v5.6/`: a kernel's measurements, the results that they are from, profiles and counters."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.pages.kernels import queries

MOST_ROWS, MOST_FILES = 500, 200


def kernel(request: HttpRequest, handle: str) -> HttpResponse:
    """Show every measurement, headlines first."""
    (found,) = queries.named([handle]) if "\0" not in handle else (None,)
    if found is None:
        raise Http404(f"no kernel {handle[:100]} was measured")
    rows = queries.measured(found, MOST_ROWS + 1)
    context = {
        "kernel": found,
        "rows": rows[:MOST_ROWS],
        "is_cut": len(rows) > MOST_ROWS,
        "results": found.results.order_by("-pk")[:MOST_FILES],
        "files": found.tool_outputs.select_related("machine", "scenario").defer("text").order_by("pk")[:MOST_FILES],
        "neighbours": queries.neighbours(found),
    }
    return render(request, "kernels/kernel.html", context)
