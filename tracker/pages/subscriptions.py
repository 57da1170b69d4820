"""What people asked to get by mail: added and ended by themselves, or by one click on the link of a mail (RFC 8058)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import Q, QuerySet

from tracker.domain.errors import InvalidInput
from tracker.models import Often, OutgoingMail, OutgoingState, Purpose, Subscription
from tracker.models.outbox import WAITING
from tracker.services import mail_transitions

MOST = 20  # of one person
LONGEST = 500  # characters of a query
_EVERY = {Often.AT_ONCE: timedelta(0), Often.DAILY: timedelta(days=1), Often.WEEKLY: timedelta(days=7)}
_SALT = "perfwork.subscription"


@transaction.atomic
def subscribe(owner: User, query: str, often: str, now: datetime) -> Subscription:
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
    row, _ = own.update_or_create(
        query=query, defaults={"often": often}, create_defaults=_new(owner, query, often, now)
    )
    return row


def _new(owner: User, query: str, often: str, now: datetime) -> dict[str, object]:
    return {"owner": owner, "query": query, "often": often, "created_at": now, "mailed_until": now}


@transaction.atomic
def end(row: Subscription, now: datetime) -> None:
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
