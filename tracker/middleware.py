"""Middleware: request times, log context, private pages, waiting for the fold after an upgrade, and names for hidden
characters, which could reverse or break a line; and the answer while the database can't be used.

What signed-in people see stays private, and no table is shown before all reports are folded. What was to be stored and
couldn't be, since a disk is full or read-only, is answered by 507 (Insufficient Storage, RFC 4918).
"""

import sys
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error
from prometheus_client import Histogram

from tracker.logs import bound
from tracker.pages.http import name_controls
from tracker.services import event_log
from tracker.services.database import FULL, outage

REQUEST_TIMES = Histogram(
    "perfwork_request_seconds",
    "Time to answer a request, without sending the answer.",
    ["page", "method", "status"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.3, 1, 3, 10),
)
_STATIC = f"/{settings.STATIC_URL.strip('/')}/"
_ALWAYS_SHOWN = ("/healthz", "/readyz", "/metrics", "/admin/", "/help/", "/api/v1/openapi.json", _STATIC)
_RETRY, _RETRY_STORING = 10, 60  # seconds
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})


GetResponse = Callable[[HttpRequest], HttpResponse]


def named_controls(get_response: GetResponse) -> GetResponse:
    """Shows characters that turn or break a line by their names; kept pages have them named already."""
    return lambda request: name_controls(get_response(request))


def measured_requests(get_response: GetResponse) -> GetResponse:
    """Times each request by the name of its page, never by its path, and marks its log lines with an id of ours."""

    def middleware(request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        with bound(request=uuid.uuid4().hex[:12], path=request.path):
            response = get_response(request)
        match = request.resolver_match
        page = (match.url_name or "unnamed") if match else "none"  # a stranger's paths must not become labels
        method = request.method if request.method in _METHODS else "other"
        REQUEST_TIMES.labels(page, method, f"{response.status_code // 100}xx").observe(time.perf_counter() - began)
        return response

    return middleware


def folded_reports(get_response: GetResponse) -> GetResponse:
    """Says how far it is while reports are folded after an upgrade, instead of showing empty tables.

    What comes in is taken meanwhile, and probes are answered.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        shows = request.method in ("GET", "HEAD") and not request.path.startswith(_ALWAYS_SHOWN)
        if shows and (at := event_log.progress()):
            return unavailable(request, str(at))
        return get_response(request)

    return middleware


def private_pages(get_response: GetResponse) -> GetResponse:
    """Marks pages as private where the browser has a session; no query is made to find out."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES or settings.SESSION_COOKIE_NAME in response.cookies:
            response["Cache-Control"] = "private, no-store"
        return response

    return middleware


def failed(request: HttpRequest) -> HttpResponse:
    """Return a 503 if the database can't be used, a 507 if it can't store, else the page of an error of ours (500)."""
    reason = outage(sys.exc_info()[1])
    if not reason:
        return server_error(request)
    return unavailable(request, reason)


def unavailable(request: HttpRequest, reason: str) -> HttpResponse:
    """Return a 503 or a 507 with a reason: a page that asks again by itself, or JSON."""
    status, seconds = (507, _RETRY_STORING) if reason == FULL else (503, _RETRY)
    if request.path.startswith("/api/"):
        response: HttpResponse = JsonResponse({"error": f"{reason}; try again in {seconds} seconds"}, status=status)
    else:
        page = render_to_string("unavailable.html", {"reason": reason, "seconds": seconds})
        response = HttpResponse(page, status=status)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response
