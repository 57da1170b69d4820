"""`/`: the releases."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.releases import queries


def releases(request: HttpRequest) -> HttpResponse:
    """Every release with its counts, the current cycle first."""
    return render(request, "releases/list.html", {"lines": queries.lines()})
