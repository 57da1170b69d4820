"""`/search/?q=…`: reports of all releases, as rows of the triage table."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from tracker.domain.errors import InvalidInput
from tracker.domain.search.completion import suggestions
from tracker.domain.search.query import parse
from tracker.pages.http import error_response
from tracker.pages.search import queries
from tracker.pages.search.names import known_names, pages_named
from tracker.pages.triage.action_keys import ACTION_KEYS
from tracker.pages.triage.exports import FORMS
from tracker.pages.triage.queries import listed, section
from tracker.pages.triage.query import POSITIONS, InvalidQuery, TriageQuery
from tracker.services.accounts.roles import CHANGE_REPORTS


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Show what matches, the newest first; what names one report leads to it."""
    text = request.GET.get("q", "").replace("\0", " ").strip()  # no database stores NUL
    if text and (report := queries.named(text)):
        return redirect("report", report.culprit.sha)
    context = {"text": text, "may_change": request.user.has_perm(CHANGE_REPORTS), "actions": ACTION_KEYS}
    try:
        query = parse(text)
        if query.is_empty:
            return render(request, "search/search.html", context)
        table = TriageQuery.from_query(_position(request.GET), timezone.now())
        found = section("merged", "Reports", queries.matching(query), table, timezone.now())
    except (InvalidInput, InvalidQuery) as error:
        return render(request, "search/search.html", {**context, "error": str(error)}, status=400)
    base = "?" + urlencode({"q": text})
    context |= {"section": found, "base": base, "query": table, "pages": pages_named(query), "forms": FORMS}
    return render(request, "search/search.html", context)


@require_safe
def search_as(request: HttpRequest, form: str) -> HttpResponse:
    """What matches as JSON, CSV, text, Markdown or Atom, the newest first."""
    text = request.GET.get("q", "").replace("\0", " ").strip()
    try:
        query = parse(text)
        if query.is_empty:
            return error_response("q: expected what to search for, as in ?q=subsystem:mm")
        table = TriageQuery.from_query(_position(QueryDict()), timezone.now())
        rows = listed(queries.matching(query), table, request.build_absolute_uri)
    except (InvalidInput, InvalidQuery) as error:
        return error_response(str(error))
    content_type, render_as = FORMS[form]
    page = request.build_absolute_uri(f"{reverse('search')}?{urlencode({'q': text})}")
    return HttpResponse(render_as(text, {"reports": rows}, page), content_type=content_type)


@require_safe
@cache_control(max_age=60)
def offered(request: HttpRequest) -> JsonResponse:
    """Return what the search box offers for what is typed so far, as [text, label] each."""
    text = request.GET.get("q", "").replace("\0", " ")
    found = [[each.text, each.label] for each in suggestions(text, known_names())]
    return JsonResponse({"suggestions": found + queries.titles(text)})


def _position(params: QueryDict) -> QueryDict:
    """Return the query of the table: everything, the newest first, from a cursor on."""
    table = QueryDict("improvements=on&order=newest", mutable=True)
    for name in POSITIONS:
        if value := params.get(name):
            table[name], table["section"] = str(value), "merged"
    return table
