"""Sign-in with a password: so many tries for an account and from a network, counted before the password is hashed.

A hash takes a tenth of a second of CPU: tries beyond a limit cost two queries instead. The limit for an account from
anywhere is far above what one network may try, so that no single stranger locks anybody out; a link by mail works
whatever was tried, but not for staff, who need their password. (django-axes counts after the hash, so that parallel
tries pass, and has one limit for everything.)
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from tracker.models import PasswordAttempt
from tracker.services.accounts.network import client_address, network_of
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

WINDOW = timedelta(minutes=15)
PER_ACCOUNT_AND_NETWORK, PER_NETWORK, PER_ACCOUNT = 5, 30, 100  # tries per window
TOO_MANY = "Too many attempts. Try again in 15 minutes, or, unless you are staff, sign in by an emailed link."


class LimitedPasswords(ModelBackend):
    """Django's own users, groups and passwords, with limits. A request beyond them has `too_many_attempts` set."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the user, or None. Raises PermissionDenied, which ends the sign-in, beyond a limit."""
        if request is None or not username:
            return super().authenticate(request, username, password, **kwargs)
        network = network_of(client_address(request))
        if not admit(username, network, timezone.now()):
            request.too_many_attempts = True  # type: ignore[attr-defined]
            raise PermissionDenied(TOO_MANY)
        user = super().authenticate(request, username, password, **kwargs)
        if user:
            forget(username, network)
        return user


def admit(username: str, network: str, now: datetime) -> bool:
    """Count a try; return False if there were too many. Tries beyond a limit are not counted: it ends by itself."""
    account = username.lower()[:150].replace("\0", "")
    with transaction.atomic():
        locks.take(Lock.PASSWORDS)  # so that concurrent tries are counted one by one
        PasswordAttempt.objects.filter(at__lt=now - WINDOW).delete()
        recent = PasswordAttempt.objects.filter(at__gt=now - WINDOW)
        if recent.filter(network=network).count() >= PER_NETWORK:
            return False
        own = recent.filter(account=account)
        if own.count() >= PER_ACCOUNT or own.filter(network=network).count() >= PER_ACCOUNT_AND_NETWORK:
            return False
        PasswordAttempt.objects.create(account=account, network=network, at=now)
    return True


def forget(username: str, network: str) -> None:
    """Forget the tries of somebody who has signed in."""
    PasswordAttempt.objects.filter(account=username.lower()[:150], network=network).delete()
