"""`/subscriptions/`: what somebody gets by mail, and how to end it, by one click without signing in."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from tracker.domain.errors import InvalidInput
from tracker.domain.search.query import parse
from tracker.models import Often, Subscription
from tracker.pages.http import cleaned, error_response, sign_in_required
from tracker.pages.search import queries
from tracker.services import subscriptions


@require_safe
@sign_in_required
def mine(request: HttpRequest) -> HttpResponse:
    """Show one's subscriptions, and a form for another one, with the query `q`."""
    assert isinstance(request.user, User)
    rows = Subscription.objects.filter(owner=request.user)
    context = {"rows": rows, "text": cleaned(request.GET, "q", subscriptions.LONGEST), "often": Often.values}
    return render(request, "subscriptions/mine.html", context)


@require_POST
@sign_in_required
def subscribe(request: HttpRequest) -> HttpResponse:
    """Subscribe to a search `q`, or with `escalations` to those; `often`: at once, daily or weekly."""
    assert isinstance(request.user, User)
    text = "" if request.POST.get("escalations") else cleaned(request.POST, "q", subscriptions.LONGEST + 1).strip()
    try:
        if not text and not request.POST.get("escalations"):
            raise InvalidInput("q: expected what to search for, as in subsystem:mm")
        if text:
            queries.matching(parse(text))  # what can't be understood is refused here, and not in a mail
        subscriptions.subscribe(request.user, text, request.POST.get("often", ""), timezone.now())
    except InvalidInput as error:
        return error_response(str(error))
    return redirect("subscriptions")


@require_POST
@login_required
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """End one's own subscription."""
    assert isinstance(request.user, User)
    for row in Subscription.objects.filter(owner=request.user, pk=pk):
        subscriptions.end(row, timezone.now())
    return redirect("subscriptions")


@csrf_exempt  # RFC 8058: a mail program posts, without cookies; the token is the proof
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask first, since programs follow links; a POST ends the subscription, also a second time."""
    row = subscriptions.find(token)
    if request.method == "POST" and row is not None:
        subscriptions.end(row, timezone.now())
        row = None
    return render(request, "subscriptions/ended.html", {"row": row})
