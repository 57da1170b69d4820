"""`/subsystem/`, `/machine/`, `/metric/` and `/author/`, and one page for each name."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from tracker.pages.browse import queries
from tracker.pages.http import refused
from tracker.pages.triage.action_keys import ACTION_KEYS
from tracker.pages.triage.query import InvalidQuery, TriageQuery


def things(request: HttpRequest, kind: str) -> HttpResponse:
    """List the names that have open reports."""
    return render(request, "browse/names.html", {"kind": kind, "names": queries.names(kind)})


def thing(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Show one of them: its reports as the URL requests, and its statistics."""
    now = timezone.now()
    query = request.GET.copy()
    query.setdefault("improvements", "on")
    if any(query.get(place) for place in ("after", "before", "end")):
        query["section"] = "merged"  # this page has only one section
    try:
        question = TriageQuery.from_query(query, now)
    except InvalidQuery as mistake:
        return refused(str(mistake))
    shown = {"page": queries.page(kind, name, question, now), "question": question, "verbs": ACTION_KEYS}
    return render(request, "browse/name.html", {**shown, "may_change": request.user.is_authenticated})
