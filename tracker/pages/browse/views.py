"""`/subsystem/`, `/machine/`, `/metric/` and `/author/`, and one page for each name."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from tracker.pages.browse import queries
from tracker.pages.http import error_response, without_empty
from tracker.pages.triage.action_keys import ACTION_KEYS
from tracker.pages.triage.controls import controls
from tracker.pages.triage.exports import FORMS
from tracker.pages.triage.query import GROUPS, ORDERS, InvalidQuery, TriageQuery
from tracker.pages.triage.views import invalid_query
from tracker.services.accounts.roles import CHANGE_REPORTS, SEND


def catalog(request: HttpRequest, kind: str) -> HttpResponse:
    """List the names that have open reports."""
    return render(request, "browse/names.html", {"kind": kind, "names": queries.names(kind)})


def catalog_page(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Show one of them: its reports as the URL requests, and its statistics."""
    now = timezone.now()
    if address := without_empty(request):
        return redirect(address)
    params = request.GET.copy()
    params.setdefault("improvements", "on")
    if any(params.get(position) for position in ("after", "before", "end")):
        params["section"] = "merged"  # this page has only one section
    try:
        query = TriageQuery.from_query(params, now)
    except InvalidQuery as error:
        return invalid_query(request, error)
    page = queries.page(kind, name, query, now)
    context = {"page": page, "query": query, "actions": ACTION_KEYS, "orders": ORDERS, "groups": GROUPS}
    context["forms"] = FORMS
    context["controls"] = controls(query, page.counts, improvements_default=True)
    # A record of a person's replies is for that person and for operators: numbers rank work, not people.
    own = isinstance(request.user, User) and request.user.email.lower() == name.lower()
    context["shows_record"] = kind != "author" or own or request.user.has_perm(SEND)
    return render(request, "browse/name.html", {**context, "may_change": request.user.has_perm(CHANGE_REPORTS)})


def catalog_page_as(request: HttpRequest, kind: str, name: str, form: str) -> HttpResponse:
    """The reports of one name as JSON, CSV, text, Markdown or Atom, with the page's filters."""
    params = request.GET.copy()
    params.setdefault("improvements", "on")
    try:
        query = TriageQuery.from_query(params, timezone.now())
    except InvalidQuery as error:
        return error_response(str(error))
    title, rows = queries.exported(kind, name, query, request.build_absolute_uri)
    content_type, render_as = FORMS[form]
    page = request.build_absolute_uri(reverse("thing", args=[kind, name]) + query.url().rstrip("?"))
    return HttpResponse(render_as(f"{kind} {title}", {"reports": rows}, page), content_type=content_type)
