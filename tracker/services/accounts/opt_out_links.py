"""Links that confirm an opt-out: mailed to an address for which an unproven mail asked to get no more."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from tracker.models import Correspondent, Mailing, SignIn
from tracker.services.accounts import signed_links
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

GOOD_FOR = timedelta(days=14)
PER_ADDRESS, IN_ALL = 1, 100  # links a day
_DAY = timedelta(days=1)
_SALT = "perfwork.opt-out"


def request_link(address: str, now: datetime) -> SignIn | None:
    """Record that an address is to be asked whether it wants no more mail; None if it is over the limit."""
    with transaction.atomic():
        locks.take(Lock.SIGN_IN_LINKS)
        today = SignIn.objects.filter(for_opt_out=True, asked_at__gt=now - _DAY)
        if today.filter(address=address).count() >= PER_ADDRESS or today.count() >= IN_ALL:
            return None
        return SignIn.objects.create(address=address, for_opt_out=True, asked_at=now)


def token(link: SignIn) -> str:
    """Return the token of a link."""
    return signed_links.token(link, _SALT)


def find(token: str, now: datetime) -> SignIn | None:
    """Return the link of a valid token; None if it is forged or expired."""
    return signed_links.find(token, _SALT, SignIn.objects.filter(for_opt_out=True, asked_at__gt=now - GOOD_FOR))


def use(link: SignIn, now: datetime) -> None:
    """Record the opt-out; an operator's stop stays."""
    SignIn.objects.filter(pk=link.pk).update(used_at=now)
    values = {"mailing": Mailing.OPTED_OUT, "note": "confirmed by a link", "since": now}
    row, new = Correspondent.objects.get_or_create(address=link.address, defaults=values)
    if not new:
        Correspondent.objects.filter(pk=row.pk).exclude(mailing=Mailing.STOPPED).update(**values)
