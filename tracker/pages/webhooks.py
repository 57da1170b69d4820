"""`/webhooks/`: the programs that somebody lets us tell of events, and what was sent to each.

Their owner adds, stops, restarts and removes them.
"""

import base64
import secrets
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.domain.events import InvalidInput
from tracker.domain.search import parse
from tracker.domain.text import parse_target
from tracker.models import DeliveryState, Webhook, WebhookDelivery
from tracker.pages import search
from tracker.pages.http import cleaned, error_response, permission_required
from tracker.services.accounts import CHANGE_REPORTS

# --- Webhooks ---

MOST = 20  # of one person
LONGEST = 500  # characters of a query
_KEY = 24  # bytes, as the Standard Webhooks specification asks for


@transaction.atomic
def add_webhook(owner: User, url: str, query: str, now: datetime) -> Webhook:
    """Add a webhook for what happens from now on. Raises InvalidInput.

    The caller has checked that the query can be understood.
    """
    parse_target(url)
    if len(query) > LONGEST:
        raise InvalidInput(f"q: expected at most {LONGEST} characters")
    own = Webhook.objects.filter(owner=owner)
    if existing := own.filter(url=url, query=query).first():
        return existing
    if own.count() >= MOST:
        raise InvalidInput(f"you have {MOST} webhooks, which is the most: remove one first")
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(_KEY)).decode()}"
    times = {"created_at": now, "events_until": now, "retry_at": now}
    return Webhook.objects.create(owner=owner, url=url, query=query, secret=secret, **times)


@transaction.atomic
def start(owner: User, pk: int, now: datetime) -> None:
    """Send again, and at once: also what waits for its next attempt."""
    rows = Webhook.objects.filter(owner=owner, pk=pk)
    rows.update(stopped="", silent=0, retry_at=now)
    waiting = WebhookDelivery.objects.filter(webhook__in=rows, state=DeliveryState.WAITING)
    waiting.update(next_at=now, attempts=0)


def repeat(owner: User, pk: int, now: datetime) -> int:
    """Send what was given up once more. Return how many deliveries wait for that now."""
    given_up = WebhookDelivery.objects.filter(webhook__owner=owner, webhook=pk, state=DeliveryState.FAILED)
    return given_up.update(state=DeliveryState.WAITING, next_at=now, created_at=now, attempts=0)


# --- Views ---

_SHOWN = 100  # deliveries, the newest


@require_safe
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def mine(request: HttpRequest) -> HttpResponse:
    """Show one's webhooks, and a form for another one."""
    rows = Webhook.objects.filter(owner=request.user.pk or 0)
    return render(request, "webhooks.html", {"rows": rows})


@require_safe
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one's own webhook: its key, and the newest deliveries."""
    row = get_object_or_404(Webhook, owner=request.user.pk or 0, pk=pk)
    sent = row.deliveries.select_related("event__report__culprit").order_by("-pk")[:_SHOWN]
    return render(request, "webhook.html", {"row": row, "deliveries": sent})


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def add(request: HttpRequest) -> HttpResponse:
    """Add a webhook: `url`, and `q`, a search, or "" for all reports."""
    assert isinstance(request.user, User)
    text = cleaned(request.POST, "q", LONGEST + 1).strip()
    try:
        if text:
            search.matching(parse(text))  # what can't be understood is refused here
        row = add_webhook(request.user, request.POST.get("url", "").strip(), text, timezone.now())
    except InvalidInput as error:
        return error_response(str(error))
    return redirect("webhook", pk=row.pk)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop one's own webhook, start it, send again what failed, or remove it, as `do` says."""
    assert isinstance(request.user, User)
    own = Webhook.objects.filter(owner=request.user, pk=pk)
    match request.POST.get("do", ""):
        case "stop":  # what happens meanwhile is sent once it is started again
            own.filter(stopped="").update(stopped="by its owner")
        case "start":
            start(request.user, pk, timezone.now())
        case "repeat":
            repeat(request.user, pk, timezone.now())
        case "remove":
            own.delete()  # with the log of its deliveries
            return redirect("webhooks")
        case other:
            return error_response(f"do: expected stop, start, repeat or remove; found {other[:40]!r}")
    return redirect("webhook", pk=pk)
