"""`/v5.6/`: the triage table of a release."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, render

from tracker.models import Release
from tracker.status import State
from tracker.triage import queries


def triage(request: HttpRequest, version: str) -> HttpResponse:
    """Both sections; `?state=` (more than one may be given) shows only those states, `?stable=missing` only what a
    stable series carries without its fix.
    """
    release = get_object_or_404(Release, version=version)
    states = request.GET.getlist("state")
    unknown = [state for state in states if state not in State.__members__.values()]
    if unknown:
        return HttpResponseBadRequest(
            f"state: expected {', '.join(State)}; found {unknown[0][:40]!r}", content_type="text/plain; charset=utf-8"
        )
    missing = request.GET.get("stable") == "missing"
    context = {
        "release": release,
        "table": queries.table(release, states, missing_in_stable=missing),
        "states": list(State),
        "chosen": states,
        "missing_in_stable": missing,
    }
    return render(request, "triage/table.html", context)
