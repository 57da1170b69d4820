"""`/results/`: the results that labs submitted, and what became of them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render

from tracker.models.results import Outcome
from tracker.pages.http import is_key
from tracker.pages.results import queries
from tracker.pages.results.queries import ResultQuery


def results(request: HttpRequest) -> HttpResponse:
    """List results, newest first; `?held=1`, `?outcome=inconclusive` and `?before=KEY` filter."""
    outcome, before = request.GET.get("outcome", ""), request.GET.get("before", "")
    if outcome and outcome not in Outcome.values:
        return _bad("outcome", ", ".join(Outcome.values), outcome)
    if before and not is_key(before):
        return _bad("before", "a number", before)
    query = ResultQuery(outcome, request.GET.get("held") == "1", int(before) if before else None)
    context = {"listing": queries.listing(query), "query": query, "outcomes": Outcome.values}
    return render(request, "results/list.html", context)


def result(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one result with its findings."""
    return render(request, "results/result.html", {"page": queries.page(pk)})


def payload(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the payload as submitted."""
    return HttpResponse(queries.payload(pk), content_type="application/json")


def _bad(name: str, expected: str, found: str) -> HttpResponseBadRequest:
    return HttpResponseBadRequest(
        f"{name}: expected {expected}; found {found[:40]!r}", content_type="text/plain; charset=utf-8"
    )
