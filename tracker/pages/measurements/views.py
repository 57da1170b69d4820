"""`/curve/…/`, `/changes/`, and a change as a request for a bisection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_safe

from tracker.domain.errors import InvalidInput
from tracker.models import CurveChange
from tracker.pages.http import error_response, is_key
from tracker.pages.measurements import bisect_request, queries

LAST_YEAR = 9000  # beyond it, a day more is beyond the calendar
MOST_CURVES = 4  # over one another


@require_safe
def curve(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a curve, in the range that `since` and `until` give."""
    try:
        since, until = _day(request, "since"), _day(request, "until")
    except InvalidInput as error:
        return error_response(str(error))
    page = queries.curve_page(pk, since, until + timedelta(days=1) if until else None)
    if page is None:
        raise Http404(f"there is no curve {pk}")
    if request.GET.get("format") == "json":
        return JsonResponse(queries.drawn(page))
    return render(request, "measurements/curve.html", {"page": page, "since": since, "until": until})


@require_safe
def curves(request: HttpRequest) -> HttpResponse:
    """Show curves over one another: those of `of`, two to four, since `since`."""
    chosen = list(dict.fromkeys(request.GET.getlist("of")))
    if not 2 <= len(chosen) <= MOST_CURVES or not all(map(is_key, chosen)):
        return error_response(f"of: expected the numbers of two to {MOST_CURVES} curves, as in ?of=1&of=2")
    try:
        since = _day(request, "since")
    except InvalidInput as error:
        return error_response(str(error))
    drawn, rows = queries.overlaid(list(map(int, chosen)), since)
    if len(rows) < len(chosen):
        raise Http404("there is no such curve")
    return render(request, "measurements/overlay.html", {"chart": drawn, "rows": rows, "since": since})


def _day(request: HttpRequest, name: str) -> datetime | None:
    """Return a day of the query string; raise InvalidInput for what is none."""
    text = request.GET.get(name, "")
    try:
        day = parse_date(text) if text else None
    except ValueError:
        day = None
    if text and (day is None or day.year > LAST_YEAR):
        raise InvalidInput(f"{name}: expected a day like 2026-03-01; found {text[:40]!r}")
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


@require_safe
def changes(request: HttpRequest) -> HttpResponse:
    """List the changes that no report says."""
    before, everything = request.GET.get("before", ""), request.GET.get("all") == "on"
    if before and not is_key(before):
        return error_response(f"before: expected a number; found {before[:40]!r}")
    rows = queries.changes_page(int(before) if before else None, everything=everything)
    older = rows[queries.PER_PAGE - 1].pk if len(rows) > queries.PER_PAGE else None
    context = {"changes": rows[: queries.PER_PAGE], "older": older, "everything": everything}
    return render(request, "measurements/changes.html", context)


@require_safe
def bisect(request: HttpRequest, pk: int, form: str) -> HttpResponse:
    """Hand out a change as a request for a bisection."""
    related = CurveChange.objects.select_related("curve__metric", "curve__scenario", "curve__machine")
    change = get_object_or_404(related, pk=pk)
    if form == "json":
        return JsonResponse(bisect_request.as_json(change), json_dumps_params={"indent": 2})
    response = HttpResponse(bisect_request.as_script(change), content_type="text/x-shellscript; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="bisect-{change.pk}.sh"'
    return response
