"""API keys for tests."""

from __future__ import annotations

from django.utils import timezone

from tracker.services import accounts
from tracker.services.accounts import ANY_PRODUCER, Scope


def token(*scopes: Scope, producer: str = ANY_PRODUCER, name: str = "our lab") -> str:
    """Return the token of a new key."""
    return accounts.create(name, scopes or (Scope.RESULTS, Scope.EVIDENCE), producer, timezone.now())[1]
