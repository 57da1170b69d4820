"""Token authentication for labs that send data over the network."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest, JsonResponse


def authentication_error(request: HttpRequest) -> JsonResponse | None:
    """Return an error response, or None if the request has a valid token."""
    if not settings.PERFWORK_API_TOKENS:
        return error_response(403, "uploads are disabled: set PERFWORK_API_TOKENS to enable them")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    known = [hmac.compare_digest(token.strip().encode(), each.encode()) for each in settings.PERFWORK_API_TOKENS]
    if scheme.lower() == "bearer" and any(known):
        return None
    response = error_response(401, "expected a header `Authorization: Bearer TOKEN` with a valid token")
    response["WWW-Authenticate"] = "Bearer"
    return response


def error_response(status: int, error: str) -> JsonResponse:
    """Return an error as JSON."""
    return JsonResponse({"error": error}, status=status)
