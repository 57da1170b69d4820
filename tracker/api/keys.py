"""Authentication of programs by API keys (RFC 6750), with what each may do, and how often."""

from __future__ import annotations

from typing import Any

import orjson
from django.contrib.auth.models import User
from django.http import HttpRequest, JsonResponse
from django.utils import timezone

from tracker.models import ApiKey
from tracker.services.accounts import api_keys
from tracker.services.accounts.api_keys import Scope


def authenticate(request: HttpRequest, scope: Scope) -> ApiKey | JsonResponse:
    """Return the key of a request that may do this, or the error: 401 without a valid key, 403 without the scope, 429
    after too many requests in this minute.
    """
    now = timezone.now()
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    key = api_keys.find(token.strip(), now) if scheme.lower() == "bearer" else None
    if key is None:
        response = error_response(401, "expected a header `Authorization: Bearer KEY` with a valid API key")
        response["WWW-Authenticate"] = "Bearer"
        return response
    if scope not in key.scopes:
        return error_response(403, f"the key {key.name!r} lacks the scope {scope}: it has {', '.join(key.scopes)}")
    if wait := api_keys.count_request(key, now):
        response = error_response(429, f"the key {key.name!r} has made {api_keys.MOST_A_MINUTE} requests this minute")
        response["Retry-After"] = str(wait)
        return response
    return key


def person_of(key: ApiKey) -> User | None:
    """Return the person that a key acts for, if their account is active."""
    person = key.acts_for
    return person if isinstance(person, User) and person.is_active else None


def json_object(request: HttpRequest, most_bytes: int) -> dict[str, Any] | JsonResponse:
    """Return the body of a request, a JSON object ({} if it is empty), or the error."""
    raw = request.read(most_bytes + 1)
    if len(raw) > most_bytes:
        return error_response(413, f"expected at most {most_bytes:,} bytes")
    if b"\\u0000" in raw:  # PostgreSQL stores none
        return error_response(400, "expected no NUL characters")
    try:
        body = orjson.loads(raw or b"{}")
    except ValueError as error:
        return error_response(400, f"invalid JSON: {error}")
    return body if isinstance(body, dict) else error_response(400, "expected a JSON object")


def error_response(status: int, error: str) -> JsonResponse:
    """Return an error as JSON."""
    return JsonResponse({"error": error}, status=status)
