"""`/index/`: the index over releases; each point has a page with its parts, what may explain it, and comments."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.charts.index import chart
from tracker.domain import versions
from tracker.domain.errors import InvalidInput
from tracker.domain.performance_index.index_math import IndexPoint
from tracker.models import Kernel, Study
from tracker.pages.http import cleaned, error_response, is_key, sign_in_required, username
from tracker.pages.index import editing, queries
from tracker.pages.index.moved_tests import moved_tests
from tracker.services.accounts.roles import CHANGE_BASKET, CHANGE_REPORTS
from tracker.services.revisions import comments, own_comments, write
from tracker.services.revisions import versions as versions_of

MOST_STUDIES = 20  # newest ones
MOST_COMMENTS = 50  # of a point, newest ones
LONGEST = 4000  # characters of a comment
MOST_OF_ONE = 5  # comments of one person on a point, so that nobody's are pushed out
_NAME = re.compile(r"[0-9a-f]{12}\Z")


def index(request: HttpRequest) -> HttpResponse:
    """Show the chart, and every point as a row."""
    points = queries.points(queries.entries())
    context = {"points": points[::-1], "studies": Study.objects.all()[:MOST_STUDIES], **_chart(request, points)}
    return render(request, "index/index.html", context)


def as_json(request: HttpRequest) -> JsonResponse:
    """Return every point with its parts, as JSON."""
    return JsonResponse({"points": [asdict(point) for point in queries.points(queries.entries())]})


def point(request: HttpRequest, version: str) -> HttpResponse:
    """Show one point: its parts, what may explain it, and comments."""
    basket = queries.entries()
    points = queries.points(basket)
    found = next((each for each in points if each.name == version), None)
    if found is None:
        raise Http404(f"kernel {version[:40]} is not in the index")
    edited = request.GET.get("edit", "")
    before = next((one.name for one, two in pairwise(points) if two is found), "")
    context = {
        "point": found,
        "cycle": versions.cycle_of(version),
        "before": before,
        "tests": moved_tests(basket, before, version),
        "contributions": sorted(found.contributions, key=lambda each: -abs(each.points)),
        "explained": queries.explaining(version, basket),
        "comments": comments(_document_key(version), MOST_COMMENTS),
        "edited": edited,
        "history": versions_of(_document_key(version), edited) if _NAME.match(edited) else (),
        "may_edit_all": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "index/point.html", {**context, **_chart(request, points)})


def _chart(request: HttpRequest, points: Sequence[IndexPoint]) -> dict[str, Any]:
    return {"chart": chart(points), "may_edit": request.user.has_perm(CHANGE_BASKET)}


def _document_key(version: str) -> str:
    """Return the `place` of a point's comments in `TextRevision`."""
    return f"index {version}"


@require_POST
@sign_in_required
def comment(request: HttpRequest) -> HttpResponse:
    """Comment on a point, or change one's own comment; triagers may change any."""
    version, name = cleaned(request.POST, "version", 30), cleaned(request.POST, "name", 12)
    if versions.parse(version) is None:
        return error_response(f"version: expected one like v6.12; found {version!r}")
    if not Kernel.objects.filter(name=version, variant="").exists():
        return error_response(f"version: kernel {version} is not in the index")
    first = next(
        iter(versions_of(_document_key(version), name)[::-1]), None
    )  # its first author may change it, whoever changed it last
    if name and (first is None or not (first.by == username(request) or request.user.has_perm(CHANGE_REPORTS))):
        return error_response("name: you have no comment with this name", 403)
    if not name and own_comments(_document_key(version), username(request)) >= MOST_OF_ONE:
        return error_response(f"text: expected at most {MOST_OF_ONE} comments of one person; change or empty one", 403)
    text = request.POST.get("text", "")
    if len(text) > LONGEST:
        return error_response(f"text: expected at most {LONGEST:,} characters, found {len(text):,}")
    if not name and not text.strip():
        return error_response("text: expected some text; found none")
    try:
        write(_document_key(version), name or secrets.token_hex(6), text, username(request), timezone.now())
    except InvalidInput as error:
        return error_response(f"text: {error}")
    return redirect("index-point", version)


def show_basket(request: HttpRequest) -> HttpResponse:
    """Show the basket, each benchmark with its weight; operators can change it."""
    if request.method == "POST":
        return _change(request)
    context = {
        "rows": editing.rows(),
        "seen": editing.newest(),
        "history": versions_of(editing.DOCUMENT_KEY, editing.CHANGES)[:50],
        "may_edit": request.user.has_perm(CHANGE_BASKET),
    }
    return render(request, "index/basket.html", context)


def _change(request: HttpRequest) -> HttpResponse:
    if not request.user.has_perm(CHANGE_BASKET):
        return error_response("only operators can change the basket", 403)
    try:
        seen = request.POST.get("seen", "0")
        rows = _rows_of(request.POST)
        changed = editing.change(rows, username(request), timezone.now(), int(seen) if is_key(seen) else 0)
    except InvalidInput as error:
        return error_response(str(error))
    messages.info(request, f"Changed: {changed}" if changed else "Nothing has changed.")
    return redirect("index-basket")


def _rows_of(form: QueryDict) -> list[editing.BasketRow]:
    if len(form.getlist("metric")) > editing.MOST + 1:
        raise InvalidInput(f"expected at most {editing.MOST} benchmarks, found {len(form.getlist('metric'))}")
    columns = [form.getlist(name) for name in ("metric", "params", "weight", "since", "until")]
    if len({len(column) for column in columns}) > 1:
        raise InvalidInput("expected the same number of values in every column")
    return [editing.BasketRow(*(value.strip()[:500] for value in row)) for row in zip(*columns, strict=True)]
