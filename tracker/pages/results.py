"""`/results/`: the results that labs submitted, and what became of them.

The pages take a constant number of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render

from tracker.models import BisectResult, Finding
from tracker.models.results import Outcome
from tracker.pages.http import is_key

PAGE = 100  # rows
FINDINGS = 500  # per result; its payload has the rest
_MISSING = "there is no such result"


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """The filters of the list: an outcome, only held results, only those before a key."""

    outcome: str = ""
    held: bool = False
    before: int | None = None


@dataclass(frozen=True, slots=True)
class ResultList:
    """One page of results; `older` is the key of the next page, None on the last."""

    rows: Sequence[BisectResult]
    older: int | None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A result, and the findings that it was the first to report."""

    row: BisectResult
    findings: Sequence[Finding]


def listing(query: ResultQuery) -> ResultList:
    """Return a page of results, newest first."""
    rows = BisectResult.objects.select_related("report__culprit").defer("payload", "measured").order_by("-pk")
    if query.outcome:
        rows = rows.filter(outcome=query.outcome)
    if query.held:
        rows = rows.exclude(held="")
    if query.before is not None:
        rows = rows.filter(pk__lt=query.before)
    results = list(rows[: PAGE + 1])
    return ResultList(results[:PAGE], results[PAGE - 1].pk if len(results) > PAGE else None)


def page(pk: int) -> ResultPage:
    """Return one result; raise Http404 if there is none."""
    row = BisectResult.objects.select_related("report__culprit").defer("payload").filter(pk=pk).first()
    if row is None:
        raise Http404(_MISSING)
    if row.report is None:
        return ResultPage(row, ())
    # Filtered by report first, which has an index; a report has only a few results.
    findings = Finding.objects.filter(report=row.report, result=row).select_related("metric", "scenario", "machine")
    ordered = findings.order_by("-headline", "pk")[:FINDINGS]
    return ResultPage(row, list(ordered))


# --- Views ---


def results(request: HttpRequest) -> HttpResponse:
    """List results, newest first; `?held=1`, `?outcome=inconclusive` and `?before=KEY` filter."""
    outcome, before = request.GET.get("outcome", ""), request.GET.get("before", "")
    if outcome and outcome not in Outcome.values:
        return _bad("outcome", ", ".join(Outcome.values), outcome)
    if before and not is_key(before):
        return _bad("before", "a number", before)
    query = ResultQuery(outcome, request.GET.get("held") == "1", int(before) if before else None)
    context = {"listing": listing(query), "query": query, "outcomes": Outcome.values}
    return render(request, "results/list.html", context)


def result(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one result with its findings."""
    return render(request, "results/result.html", {"page": page(pk)})


def payload(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the payload as submitted."""
    payload = BisectResult.objects.filter(pk=pk).values_list("payload", flat=True).first()
    if payload is None:
        raise Http404(_MISSING)
    return HttpResponse(payload, content_type="application/json")


def _bad(name: str, expected: str, value: str) -> HttpResponseBadRequest:
    return HttpResponseBadRequest(
        f"{name}: expected {expected}; found {value[:40]!r}", content_type="text/plain; charset=utf-8"
    )
