"""Authentication of programs that send data over the network, by API keys."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.utils import timezone

from tracker.models import ApiKey
from tracker.services.accounts import api_keys
from tracker.services.accounts.api_keys import Scope


def authenticate(request: HttpRequest, scope: Scope) -> ApiKey | JsonResponse:
    """Return the key of a request that may do this, or the error: 401 without a valid key, 403 without the scope."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    key = api_keys.find(token.strip(), timezone.now()) if scheme.lower() == "bearer" else None
    if key is None:
        response = error_response(401, "expected a header `Authorization: Bearer KEY` with a valid API key")
        response["WWW-Authenticate"] = "Bearer"
        return response
    if scope not in key.scopes:
        return error_response(403, f"the key {key.name!r} may not send {scope}: it has {', '.join(key.scopes)}")
    return key


def error_response(status: int, error: str) -> JsonResponse:
    """Return an error as JSON."""
    return JsonResponse({"error": error}, status=status)
