"""`/`: the front page, which lists the releases."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from tracker.pages.home import queries


def releases(request: HttpRequest) -> HttpResponse:
    """Show the current cycle, then every other release with its counts."""
    return render(request, "home/releases.html", {"page": queries.home_page(timezone.now())})
