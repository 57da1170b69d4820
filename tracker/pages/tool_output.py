"""`/evidence/…`: one file as a table and as received; two of them side by side."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.documents.blocks import Document
from tracker.documents.compare_files import Beside, table
from tracker.domain.tool_output.diff import TOP, diff
from tracker.domain.tool_output.kinds import read
from tracker.models import ToolOutput
from tracker.pages.http import error_response, is_key

MOST_ROWS = 200
MOST_CHARACTERS = 200_000  # characters shown; a link leads to the whole file


def evidence(request: HttpRequest, pk: int) -> HttpResponse:
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
    return render(request, "tool_output/file.html", context)


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the text as received, as plain text that browsers don't interpret."""
    response = HttpResponse(_row(pk).text, content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


def beside(request: HttpRequest) -> HttpResponse:
    """Show two files of one kind, `old` and `new`, side by side."""
    keys = [request.GET.get(name, "") for name in ("old", "new")]
    if not all(map(is_key, keys)):
        return error_response("old, new: expected the IDs of two files")
    old, new = (_row(int(key)) for key in keys)
    if old.kind != new.kind:
        return error_response(f"old, new: expected files of one kind; found {old.kind} and {new.kind}")
    before, after = read(old.kind, old.text), read(new.kind, new.text)
    found = None
    if before and after:
        differences = diff([before, after], TOP if before.is_share else MOST_ROWS)
        found = Document("", "", (table(Beside(old.kind, "", (_side(old), _side(new)), (), differences)),))
    return render(request, "tool_output/compare.html", {"old": old, "new": new, "document": found})


def _side(row: ToolOutput) -> str:
    return row.side or (row.kernel.label if row.kernel else "")


def _row(pk: int) -> ToolOutput:
    row = ToolOutput.objects.select_related("report__culprit", "kernel", "machine", "scenario").filter(pk=pk).first()
    if row is None:
        raise Http404("there is no such file")
    return row
