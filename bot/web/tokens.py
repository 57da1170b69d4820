"""Who may hand in something over the network: those who show a token of ours."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest, JsonResponse


def stranger(request: HttpRequest) -> JsonResponse | None:
    """Why somebody may not, or None for one of our labs."""
    if not settings.PERFWORK_API_TOKENS:
        return problem(403, "nothing is taken over the network: PERFWORK_API_TOKENS is not set")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    known = [hmac.compare_digest(token.strip().encode(), each.encode()) for each in settings.PERFWORK_API_TOKENS]
    if scheme.lower() == "bearer" and any(known):
        return None
    response = problem(401, "expected a header `Authorization: Bearer TOKEN` with a token of ours")
    response["WWW-Authenticate"] = "Bearer"
    return response


def problem(status: int, error: str) -> JsonResponse:
    """What is wrong, as JSON."""
    return JsonResponse({"error": error}, status=status)
