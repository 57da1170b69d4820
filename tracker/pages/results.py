"""`/results/`: the results that labs submitted, and what became of them.

The pages take a constant number of queries.
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.models import BisectResult, Finding
from tracker.models.results import Outcome
from tracker.pages.http import error_response, is_key
from tracker.pages.report import MOST_IMPORTANT, by_importance

PAGE = 100  # rows
FINDINGS = 500  # per result; its payload has the rest


def named(pk: int) -> BisectResult:
    """Return one result without its payload; raise Http404 if there is none."""
    row = BisectResult.objects.select_related("report__culprit").defer("payload").filter(pk=pk).first()
    if row is None:
        raise Http404("there is no such result")
    return row


def findings_of(row: BisectResult) -> list[Finding]:
    """Return the findings that a result was the first to report."""
    if row.report is None:
        return []
    # Filtered by report first, which has an index; a report has only a few results.
    findings = Finding.objects.filter(report=row.report, result=row).select_related("metric", "scenario", "machine")
    return by_importance(findings.order_by(*MOST_IMPORTANT)[:FINDINGS])


# --- Views ---


def results(request: HttpRequest) -> HttpResponse:
    """List results, newest first; `?held=1`, `?outcome=inconclusive` and `?before=KEY` filter."""
    outcome, before, held = (
        request.GET.get("outcome", ""),
        request.GET.get("before", ""),
        request.GET.get("held") == "1",
    )
    if outcome and outcome not in Outcome.values:
        return error_response(f"outcome: expected {', '.join(Outcome.values)}; found {outcome[:40]!r}")
    if before and not is_key(before):
        return error_response(f"before: expected a number; found {before[:40]!r}")
    rows = BisectResult.objects.select_related("report__culprit").defer("payload", "measured", "files").order_by("-pk")
    if outcome:
        rows = rows.filter(outcome=outcome)
    if held:
        rows = rows.exclude(held="")
    if before:
        rows = rows.filter(pk__lt=int(before))
    page = list(rows[: PAGE + 1])
    older = page[PAGE - 1].pk if len(page) > PAGE else None
    context = {"rows": page[:PAGE], "older": older, "outcome": outcome, "held": held, "outcomes": Outcome.values}
    return render(request, "results.html", context)


def result(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one result with its findings."""
    row = named(pk)
    return render(request, "result.html", {"row": row, "findings": findings_of(row)})


def payload(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the payload as submitted."""
    payload = BisectResult.objects.filter(pk=pk).values_list("payload", flat=True).first()
    if payload is None:
        raise Http404("there is no such result")
    return HttpResponse(payload, content_type="application/json")
