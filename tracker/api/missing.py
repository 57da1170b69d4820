"""What a program gets for an address that does not exist: JSON, as everywhere else in the API."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.defaults import page_not_found


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return a 404 as JSON below /api/, as a page elsewhere."""
    if not request.path.startswith("/api/"):
        return page_not_found(request, exception)
    return JsonResponse(
        {"error": f"there is no address {request.path[:200]}; /api/v1/openapi.json has all"}, status=404
    )
