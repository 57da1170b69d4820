"""`/inbox/`: suggestions, quarantine, archives."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.utils import timezone

from tracker.inbox import queries


def inbox(request: HttpRequest) -> HttpResponse:
    """The newest of each; `?suggestions=KEY` and `?quarantine=KEY` show what is older."""
    keys: dict[str, int | None] = {}
    for name in ("suggestions", "quarantine"):
        text = request.GET.get(name, "")
        if text and not (text.isdecimal() and text.isascii() and len(text) < 19):
            words = f"{name}: expected a number; found {text[:40]!r}"
            return HttpResponseBadRequest(words, content_type="text/plain; charset=utf-8")
        keys[name] = int(text) if text else None
    page = queries.inbox(timezone.now(), keys["suggestions"], keys["quarantine"])
    return render(request, "inbox/inbox.html", {"page": page})
