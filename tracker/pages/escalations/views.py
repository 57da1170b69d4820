"""`/escalations/`: reports that need a push, over all releases."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.pages.escalations import queries
from tracker.pages.triage.action_keys import ACTION_KEYS
from tracker.services.accounts.roles import CHANGE_REPORTS


@require_safe
def escalations(request: HttpRequest) -> HttpResponse:
    """Show what blocks, what nobody answers, fixes that lie about, and fixes that stable series lack."""
    may_change = request.user.has_perm(CHANGE_REPORTS)
    context = {"page": queries.escalations(timezone.now()), "may_change": may_change, "actions": ACTION_KEYS}
    return render(request, "escalations/escalations.html", context)
