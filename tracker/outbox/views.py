"""`/outbox/` and `/outbox/<id>/`: outgoing mail. Anybody may read it; who wants no mail is shown to staff alone."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render

from tracker.models import OutgoingState
from tracker.outbox import queries


def outbox(request: HttpRequest) -> HttpResponse:
    """The newest mails; `?state=held` those of one state, `?before=KEY` what is older."""
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    if state and state not in OutgoingState.values:
        return _refused(f"state: expected one of {', '.join(OutgoingState.values)}; found {state[:40]!r}")
    if before and not (before.isdecimal() and before.isascii() and len(before) < 19):
        return _refused(f"before: expected a number; found {before[:40]!r}")
    shown = {
        "page": queries.outbox(state, int(before) if before else None),
        "state": state,
        "states": OutgoingState.choices,
    }
    return render(request, "outbox/list.html", shown)


def mail(request: HttpRequest, pk: int) -> HttpResponse:
    """One mail as its receiver sees it, with the reason for every recipient, and its raw form."""
    return render(request, "outbox/mail.html", {"page": queries.page(pk)})


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """The bytes as they are sent, as text that no browser takes for a page."""
    response = HttpResponse(bytes(queries.page(pk).mail.raw), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _refused(words: str) -> HttpResponse:
    return HttpResponseBadRequest(words, content_type="text/plain; charset=utf-8")
