"""Middleware: request times, log context, private pages, waiting for the fold after an upgrade, and names for hidden
characters, which could reverse or break a line.

What signed-in people see stays private, and no table is shown before all reports are folded.
"""

import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import Histogram

from tracker.logs import bound
from tracker.pages.http import name_controls
from tracker.services import event_log
from tracker.unavailable import unavailable

REQUEST_TIMES = Histogram(
    "perfwork_request_seconds",
    "Time to answer a request, without sending the answer.",
    ["page", "method", "status"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.3, 1, 3, 10),
)
_STATIC = f"/{settings.STATIC_URL.strip('/')}/"
_ALWAYS_SHOWN = ("/healthz", "/readyz", "/metrics", "/admin/", "/help/", "/api/v1/openapi.json", _STATIC)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})


class NamedControls:
    """Shows characters that turn or break a line by their names; kept pages have them named already."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return name_controls(self.get_response(request))


class MeasuredRequests:
    """Times each request by the name of its page, never by its path, and marks its log lines with an id of ours."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        with bound(request=uuid.uuid4().hex[:12], path=request.path):
            response = self.get_response(request)
        match = request.resolver_match
        page = (match.url_name or "unnamed") if match else "none"  # a stranger's paths must not become labels
        method = request.method if request.method in _METHODS else "other"
        REQUEST_TIMES.labels(page, method, f"{response.status_code // 100}xx").observe(time.perf_counter() - began)
        return response


class FoldedReports:
    """Says how far it is while reports are folded after an upgrade, instead of showing empty tables.

    What comes in is taken meanwhile, and probes are answered.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD") or request.path.startswith(_ALWAYS_SHOWN):
            return self.get_response(request)
        if at := event_log.progress():
            return unavailable(request, str(at))
        return self.get_response(request)


class PrivatePages:
    """Marks pages as private where the browser has a session; no query is made to find out."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES or settings.SESSION_COOKIE_NAME in response.cookies:
            response["Cache-Control"] = "private, no-store"
        return response
