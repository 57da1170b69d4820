"""What labs handed in: `/results/`, the results and what became of them; `/tool-output/…`, files of tool output.

A file of tool output is shown as a table and as received, or two of them side by side. It belongs to a side of a
report, or to a kernel, optionally on a machine.
"""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.documents.blocks import Document
from tracker.documents.study import Beside, table
from tracker.domain.events import InvalidInput
from tracker.domain.tool_output import TOP, diff, read
from tracker.models import BisectResult, Finding, Machine, ToolOutput
from tracker.models.results import CommitSide, Outcome
from tracker.pages.http import error_response, is_key, key_in
from tracker.pages.kernels import named
from tracker.pages.report import MOST_IMPORTANT, by_importance, find_report

# --- What a file belongs to ---


def place_of(report: str = "", side: str = "", kernel: str = "", machine: str = "") -> dict[str, Any]:
    """Return a report with its side, or a kernel, and the machine, as `tool_output.attach` takes them. Raises
    InvalidInput if that is not exactly one, Http404 if it does not exist.
    """
    if bool(report) == bool(kernel):
        raise InvalidInput("expected a report with its side, or a kernel")
    if any("\0" in name for name in (report, kernel, machine)):
        raise InvalidInput("names must not contain NUL")
    box = Machine.objects.filter(name=machine).first() if machine else None
    if machine and box is None:
        raise Http404(f"there is no machine {machine[:100]}")
    if report:
        if side not in CommitSide.values:
            raise InvalidInput(f"side: expected parent or culprit, found {side[:20]!r}")
        return {"report": find_report(report), "side": side, "machine": box}
    (kernel_row,) = named([kernel])
    if kernel_row is None:
        raise Http404(f"no kernel {kernel[:100]} was measured")
    return {"kernel": kernel_row, "machine": box}


# --- Views ---

MOST_ROWS = 200
MOST_CHARACTERS = 200_000  # characters shown; a link leads to the whole file


def one_file(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a file as a table, and its text."""
    row = _row(pk)
    listing = read(row.kind, row.text)
    context = {
        "row": row,
        "listing": listing,
        "rows": listing.rows[:MOST_ROWS] if listing else (),
        "more": max(0, len(listing.rows) - MOST_ROWS) if listing else 0,
        "text": row.text[:MOST_CHARACTERS],
        "is_cut": len(row.text) > MOST_CHARACTERS,
    }
    return render(request, "tool_output.html", context)


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the text as received, as plain text that browsers don't interpret."""
    return HttpResponse(_row(pk).text, content_type="text/plain; charset=utf-8")


def beside(request: HttpRequest) -> HttpResponse:
    """Show two files of one kind, `old` and `new`, side by side."""
    keys = [request.GET.get(name, "") for name in ("old", "new")]
    if not all(map(is_key, keys)):
        return error_response("old, new: expected the IDs of two files")
    old, new = (_row(int(key)) for key in keys)
    if old.kind != new.kind:
        return error_response(f"old, new: expected files of one kind; found {old.kind} and {new.kind}")
    before, after = read(old.kind, old.text), read(new.kind, new.text)
    document = None
    if before and after:
        differences = diff([before, after], TOP if before.is_share else MOST_ROWS)
        sides = tuple(row.side or (row.kernel.label if row.kernel else "") for row in (old, new))
        document = Document("", "", (table(Beside(old.kind, "", sides, (), differences)),))
    return render(request, "tool_output_beside.html", {"old": old, "new": new, "document": document})


def _row(pk: int) -> ToolOutput:
    row = ToolOutput.objects.select_related("report__culprit", "kernel", "machine", "scenario").filter(pk=pk).first()
    if row is None:
        raise Http404("there is no such file")
    return row


# --- `/results/`: the results that labs submitted, and what became of them ---
# The pages take a constant number of queries.

PAGE = 100  # rows
FINDINGS = 500  # per result; its payload has the rest


def result_named(pk: int) -> BisectResult:
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
    outcome, held = request.GET.get("outcome", ""), request.GET.get("held") == "1"
    before = key_in(request.GET, "before")
    if outcome and outcome not in Outcome.values:
        return error_response(f"outcome: expected {', '.join(Outcome.values)}; found {outcome[:40]!r}")
    rows = BisectResult.objects.select_related("report__culprit").defer("payload", "measured", "files").order_by("-pk")
    if outcome:
        rows = rows.filter(outcome=outcome)
    if held:
        rows = rows.exclude(held="")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    page = list(rows[: PAGE + 1])
    older = page[PAGE - 1].pk if len(page) > PAGE else None
    context = {"rows": page[:PAGE], "older": older, "outcome": outcome, "held": held, "outcomes": Outcome.values}
    return render(request, "results.html", context)


def result(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one result with its findings."""
    row = result_named(pk)
    return render(request, "result.html", {"row": row, "findings": findings_of(row)})


def payload(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the payload as submitted."""
    payload = BisectResult.objects.filter(pk=pk).values_list("payload", flat=True).first()
    if payload is None:
        raise Http404("there is no such result")
    return HttpResponse(payload, content_type="application/json")
