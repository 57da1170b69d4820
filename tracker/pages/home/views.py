"""`/`: the front page, which lists the releases."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from tracker.pages.home import queries
from tracker.services.accounts.roles import SEND
from tracker.services.faults import faults


def releases(request: HttpRequest) -> HttpResponse:
    """Show the current cycle, then every other release with its counts; operators also see what does not work."""
    now = timezone.now()
    context = {"page": queries.home_page(now), "faults": faults(now) if request.user.has_perm(SEND) else []}
    return render(request, "home/releases.html", context)
