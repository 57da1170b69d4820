"""What people asked to be told, by mail (`/subscriptions/`) or through a program of theirs (`/webhooks/`).

They subscribe to a search or to the escalations. The link in each mail ends a subscription without signing in: by one
click (RFC 8058), or after a question, since programs follow links.
"""

import base64
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from tracker.domain.events import InvalidInput
from tracker.domain.search import parse
from tracker.domain.text import parse_target
from tracker.models import (
    DeliveryState,
    Often,
    OutgoingMail,
    OutgoingState,
    Purpose,
    Subscription,
    Webhook,
    WebhookDelivery,
)
from tracker.models.mail import WAITING
from tracker.pages import search
from tracker.pages.http import cleaned, error_response, permission_required, row_or_404, sign_in_required
from tracker.services import mail_transitions
from tracker.services.accounts import CHANGE_REPORTS

# --- Subscriptions ---

MOST = 20  # of one person
LONGEST = 500  # characters of a query
_EVERY = {Often.AT_ONCE: timedelta(0), Often.DAILY: timedelta(days=1), Often.WEEKLY: timedelta(days=7)}
_SALT = "perfwork.subscription"


@transaction.atomic
def add_subscription(owner: User, query: str, often: str, now: datetime) -> Subscription:
    """Add a subscription, or change how often it is mailed. Raises InvalidInput.

    The caller has checked that the query can be understood. `query` "": the escalations.
    """
    if not owner.email:
        raise InvalidInput("your account has no email address to send to: an operator can add it")
    if often not in Often.values:
        raise InvalidInput(f"often: expected {', '.join(Often.values)}; found {often[:40]!r}")
    if len(query) > LONGEST:
        raise InvalidInput(f"q: expected at most {LONGEST} characters")
    own = Subscription.objects.filter(owner=owner)
    if own.exclude(query=query).count() >= MOST:
        raise InvalidInput(f"you have {MOST} subscriptions, which is the most: end one first")
    new = {"owner": owner, "query": query, "often": often, "created_at": now, "mailed_until": now}
    return own.update_or_create(query=query, defaults={"often": often}, create_defaults=new)[0]


@transaction.atomic
def end_subscription(row: Subscription, now: datetime) -> None:
    """End a subscription, and cancel its mails that have not left."""
    unsent = OutgoingMail.objects.filter(purpose__startswith=f"{Purpose.SUBSCRIPTION}{row.pk} ", state__in=WAITING)
    mail_transitions.transition(unsent, OutgoingState.CANCELLED, "subscriptions", now, "the subscription has ended")
    row.delete()


def due(now: datetime) -> QuerySet[Subscription]:
    """Return the subscriptions whose time has come, of people who have an account and an address."""
    times = Q()
    for often, every in _EVERY.items():
        times |= Q(often=often, mailed_until__lte=now - every)
    rows = Subscription.objects.filter(times, owner__is_active=True).exclude(owner__email="")
    return rows.select_related("owner").order_by("mailed_until", "pk")


def token(row: Subscription) -> str:
    """Return the token of the link that ends a subscription: it names the subscription, and nothing else."""
    return signing.dumps(row.pk, salt=_SALT)


def find(token: str) -> Subscription | None:
    """Return the subscription of a link; None if the token is forged, or the subscription has ended."""
    try:
        return Subscription.objects.filter(pk=signing.loads(token, salt=_SALT)).first()
    except signing.BadSignature:
        return None


# --- Views ---


@require_safe
@sign_in_required
def my_subscriptions(request: HttpRequest) -> HttpResponse:
    """Show one's subscriptions, and a form for another one, with the query `q`."""
    assert isinstance(request.user, User)
    rows = Subscription.objects.filter(owner=request.user)
    context = {"rows": rows, "text": cleaned(request.GET, "q", LONGEST), "often": Often.values}
    return render(request, "subscriptions.html", context)


@require_POST
@sign_in_required
def subscribe(request: HttpRequest) -> HttpResponse:
    """Subscribe to a search `q`, or with `escalations` to those; `often`: at once, daily or weekly."""
    assert isinstance(request.user, User)
    text = "" if request.POST.get("escalations") else cleaned(request.POST, "q", LONGEST + 1).strip()
    if not text and not request.POST.get("escalations"):
        raise InvalidInput("q: expected what to search for, as in subsystem:mm")
    if text:
        search.matching(parse(text))  # what can't be understood is refused here, and not in a mail
    add_subscription(request.user, text, request.POST.get("often", ""), timezone.now())
    return redirect("subscriptions")


@require_POST
@sign_in_required
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """End one's own subscription."""
    assert isinstance(request.user, User)
    for row in Subscription.objects.filter(owner=request.user, pk=pk):
        end_subscription(row, timezone.now())
    return redirect("subscriptions")


@csrf_exempt  # RFC 8058: a mail program posts, without cookies; the token is the proof
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask first, since programs follow links; a POST ends the subscription, also a second time."""
    row = find(token)
    if request.method == "POST" and row is not None:
        end_subscription(row, timezone.now())
        return render(request, "unsubscribe.html", {"ended": True})
    return render(request, "unsubscribe.html", {"row": row})


# --- `/webhooks/`: the programs that somebody lets us tell of events, and what was sent to each ---
# Their owner adds, stops, restarts and removes them.

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
def start_webhook(owner: User, pk: int, now: datetime) -> None:
    """Send again, and at once: also what waits for its next attempt."""
    rows = Webhook.objects.filter(owner=owner, pk=pk)
    rows.update(stopped="", silent=0, retry_at=now)
    waiting = WebhookDelivery.objects.filter(webhook__in=rows, state=DeliveryState.WAITING)
    waiting.update(next_at=now, attempts=0)


def send_again(owner: User, pk: int, now: datetime) -> int:
    """Send what was given up once more. Return how many deliveries wait for that now."""
    given_up = WebhookDelivery.objects.filter(webhook__owner=owner, webhook=pk, state=DeliveryState.FAILED)
    return given_up.update(state=DeliveryState.WAITING, next_at=now, created_at=now, attempts=0)


# --- Views ---

_SHOWN = 100  # deliveries, the newest


@require_safe
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def my_webhooks(request: HttpRequest) -> HttpResponse:
    """Show one's webhooks, and a form for another one."""
    rows = Webhook.objects.filter(owner=request.user.pk or 0)
    return render(request, "webhooks.html", {"rows": rows})


@require_safe
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one's own webhook: its key, and the newest deliveries."""
    row = row_or_404(Webhook.objects.filter(owner=request.user.pk or 0, pk=pk), f"you have no webhook {pk}")
    sent = row.deliveries.select_related("event__report__culprit").order_by("-pk")[:_SHOWN]
    return render(request, "webhook.html", {"row": row, "deliveries": sent})


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def new_webhook(request: HttpRequest) -> HttpResponse:
    """Add a webhook: `url`, and `q`, a search, or "" for all reports."""
    assert isinstance(request.user, User)
    text = cleaned(request.POST, "q", LONGEST + 1).strip()
    if text:
        search.matching(parse(text))  # what can't be understood is refused here
    row = add_webhook(request.user, request.POST.get("url", "").strip(), text, timezone.now())
    return redirect("webhook", pk=row.pk)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can have webhooks")
def change_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop one's own webhook, start it, send again what failed, or remove it, as `do` says."""
    assert isinstance(request.user, User)
    own = row_or_404(Webhook.objects.filter(owner=request.user, pk=pk), f"you have no webhook {pk}")
    match request.POST.get("do", ""):
        case "stop":  # what happens meanwhile is sent once it is started again
            Webhook.objects.filter(pk=own.pk, stopped="").update(stopped="by its owner")
        case "start":
            start_webhook(request.user, pk, timezone.now())
        case "repeat":
            send_again(request.user, pk, timezone.now())
        case "remove":
            own.delete()  # with the log of its deliveries
            return redirect("webhooks")
        case other:
            return error_response(f"do: expected stop, start, repeat or remove; found {other[:40]!r}")
    return redirect("webhook", pk=pk)
