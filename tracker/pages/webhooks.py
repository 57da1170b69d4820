"""`/webhooks/`: the programs that somebody lets us tell of events, and what was sent to each."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.domain.errors import InvalidInput
from tracker.domain.search.query import parse
from tracker.models import Webhook
from tracker.pages.http import cleaned, error_response
from tracker.pages.search import queries
from tracker.services import webhooks
from tracker.services.accounts.roles import CHANGE_REPORTS

_SHOWN = 100  # deliveries, the newest


@require_safe
@permission_required(CHANGE_REPORTS, raise_exception=True)
def mine(request: HttpRequest) -> HttpResponse:
    """Show one's webhooks, and a form for another one."""
    rows = Webhook.objects.filter(owner=request.user.pk or 0)
    return render(request, "webhooks/mine.html", {"rows": rows})


@require_safe
@permission_required(CHANGE_REPORTS, raise_exception=True)
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one's own webhook: its key, and the newest deliveries."""
    row = get_object_or_404(Webhook, owner=request.user.pk or 0, pk=pk)
    sent = row.deliveries.select_related("event__report__culprit").order_by("-pk")[:_SHOWN]
    return render(request, "webhooks/webhook.html", {"row": row, "deliveries": sent})


@require_POST
@permission_required(CHANGE_REPORTS, raise_exception=True)
def add(request: HttpRequest) -> HttpResponse:
    """Add a webhook: `url`, and `q`, a search, or "" for all reports."""
    assert isinstance(request.user, User)
    text = cleaned(request.POST, "q", webhooks.LONGEST + 1).strip()
    try:
        if text:
            queries.matching(parse(text))  # what can't be understood is refused here
        row = webhooks.add(request.user, request.POST.get("url", "").strip(), text, timezone.now())
    except InvalidInput as error:
        return error_response(str(error))
    return redirect("webhook", pk=row.pk)


@require_POST
@permission_required(CHANGE_REPORTS, raise_exception=True)
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop one's own webhook, start it, send again what failed, or remove it, as `do` says."""
    assert isinstance(request.user, User)
    match request.POST.get("do", ""):
        case "stop":
            webhooks.stop(request.user, pk)
        case "start":
            webhooks.start(request.user, pk, timezone.now())
        case "repeat":
            webhooks.repeat(request.user, pk, timezone.now())
        case "remove":
            webhooks.remove(request.user, pk)
            return redirect("webhooks")
        case other:
            return error_response(f"do: expected stop, start, repeat or remove; found {other[:40]!r}")
    return redirect("webhook", pk=pk)
