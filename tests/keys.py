"""API keys for tests."""

from __future__ import annotations

from django.utils import timezone

from tracker.services.accounts import api_keys
from tracker.services.accounts.api_keys import ANY_PRODUCER, Scope


def token(*scopes: Scope, producer: str = ANY_PRODUCER, name: str = "our lab") -> str:
    """Return the token of a new key."""
    return api_keys.create(name, scopes or (Scope.RESULTS, Scope.EVIDENCE), producer, timezone.now())[1]
