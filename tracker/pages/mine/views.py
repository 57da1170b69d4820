"""`/mine/`: what awaits whoever is signed in."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.pages.http import sign_in_required
from tracker.pages.mine import queries
from tracker.pages.triage.action_keys import ACTION_KEYS
from tracker.services.accounts.roles import CHANGE_REPORTS


@require_safe
@sign_in_required
def mine(request: HttpRequest) -> HttpResponse:
    """Show the reports that somebody wrote the culprit of or has to look at."""
    assert isinstance(request.user, User)
    page = queries.mine(request.user, timezone.now())
    may_change = request.user.has_perm(CHANGE_REPORTS)
    context = {"page": page, "has_rows": any(each.rows for each in page.sections)}
    return render(request, "mine/mine.html", {**context, "may_change": may_change, "actions": ACTION_KEYS})
