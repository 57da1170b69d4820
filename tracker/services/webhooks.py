"""Webhooks that people set up: added, stopped, started again and removed by their owner."""

from __future__ import annotations

import base64
import secrets
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from tracker.domain.errors import InvalidInput
from tracker.domain.text.web_target import parse_target
from tracker.models import DeliveryState, Webhook, WebhookDelivery

MOST = 20  # of one person
LONGEST = 500  # characters of a query
_KEY = 24  # bytes, as the Standard Webhooks specification asks for


@transaction.atomic
def add(owner: User, url: str, query: str, now: datetime) -> Webhook:
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


def stop(owner: User, pk: int) -> None:
    """Send nothing until it is started again; what happens meanwhile is sent then."""
    Webhook.objects.filter(owner=owner, pk=pk, stopped="").update(stopped="by its owner")


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


def remove(owner: User, pk: int) -> None:
    """Remove a webhook with the log of its deliveries."""
    Webhook.objects.filter(owner=owner, pk=pk).delete()
