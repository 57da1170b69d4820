"""`/statistics/`, and the same as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from tracker.domain.text.spreadsheet import safe_cell
from tracker.domain.timing.response_times import WITHIN
from tracker.pages.statistics import queries

_TIMES = ("response", "candidate", "landing")


@require_safe
def statistics(request: HttpRequest) -> HttpResponse:
    """Show how fast regressions are answered and fixed, and how often reports were wrong."""
    page = queries.statistics()
    within = list(zip(WITHIN, page.total.within, strict=True))
    return render(request, "statistics/statistics.html", {"page": page, "within": within})


@require_safe
def statistics_csv(request: HttpRequest) -> HttpResponse:
    """Return all groups as CSV; times are in hours."""
    page, out = queries.statistics(), io.StringIO()
    table = csv.writer(out)
    names = [f"{name}_{part}" for name in _TIMES for part in ("number", "median_hours", "p90_hours")]
    table.writerow(["by", "name", "regressions", *names, "ended", "false_alarms"])
    for kind, groups in {"all": [page.total], **page.tables}.items():
        for each in groups:
            times = [getattr(each, name) for name in _TIMES]
            values = [value for of in times for value in (of.number, _hours(of.median), _hours(of.slow))]
            table.writerow([kind, safe_cell(each.name), each.response.of, *values, each.ended, each.false])
    return HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8")


def _hours(time: timedelta | None) -> str:
    return "" if time is None else f"{time.total_seconds() / 3600:.1f}"
