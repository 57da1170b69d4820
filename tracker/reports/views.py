"""`/report/<sha>/`: one report."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.reports import queries


def report(request: HttpRequest, ref: str) -> HttpResponse:
    """The findings, the timeline with its evidence, and the messages of a report."""
    return render(request, "reports/report.html", {"page": queries.page(queries.find_report(ref))})


def tables(request: HttpRequest, ref: str) -> HttpResponse:
    """All that the robot measured, thousands of rows, on a page of their own."""
    found = queries.find_report(ref)
    return render(request, "reports/tables.html", {"report": found, "tables": queries.tables(found)})
