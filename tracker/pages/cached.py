"""Pages that readers share: made once per change, and kept compressed, for browsers not signed in.

A page is kept under its address and a stamp of what it shows. What pages show is added, not changed, so a stamp is
made of the highest keys of some tables: one query, which primary keys alone answer. The page's ETag follows from
both, so that a browser that has the page gets a 304 before it is made. What no stamp shows, such as an age ("2 hours
ago") or a machine that was renamed in place, is at most KEEP old, in documents DOCUMENT_KEEP.

Only what anybody else would get is kept: requests with a cookie (but the one of CSRF) or an Authorization header pass
by, as do errors and responses that set a cookie. A page is made by one thread, and the others wait for it.
"""

import gzip
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers

from tracker import models
from tracker.domain.events import InvalidInput
from tracker.models import Release, ReportHighlight
from tracker.pages.http import error_response, name_controls
from tracker.pages.triage import table

# --- The stamp ---

# What pages show is added, not changed, but for caches, which follow from what is added.
ALL: Sequence[type[Model]] = (
    models.Event,
    models.Message,
    models.Finding,
    models.BisectResult,
    models.Measurement,
    models.MailTransition,
    models.Suggestion,
    models.TextRevision,
    models.Release,
    models.ReleaseCandidate,
    models.ReportHighlight,
    models.SavedView,
    models.CurveChange,
    models.LabJob,
)
MEASURED: Sequence[type[Model]] = (
    models.Measurement,
    models.Kernel,
    models.BasketEntry,
    models.Study,
    models.TextRevision,
)


def stamp(of: Sequence[type[Model]] = ALL) -> str:
    """Return a stamp that differs once a row was added to one of these tables."""
    newest = ", ".join(
        f"(SELECT MAX(id) FROM {connection.ops.quote_name(model._meta.db_table)})"  # our own names
        for model in of
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {newest}")
        return ":".join(str(value or 0) for value in cursor.fetchone())


# --- The cache ---

KEEP = 60.0  # seconds
DOCUMENT_KEEP = 600.0
LARGEST = 400_000  # bytes, compressed
_WITHOUT_MEANING = frozenset({settings.CSRF_COOKIE_NAME})
View = Callable[..., HttpResponse]


@dataclass(frozen=True, slots=True)
class Kept:
    """A finished page, with the headers that its view gave it."""

    headers: Mapping[str, str]
    compressed: bytes


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a page depends on: a stamp, from the arguments of its URL, and for how long that is enough."""

    stamp: Callable[[Mapping[str, Any]], str]
    keep: float


def _of_release(arguments: Mapping[str, Any]) -> str:
    """Return the stamp of a release report: the release's events, its highlights, measurements and prose."""
    release = table.stamped(Release.objects.filter(version=arguments.get("version", ""))).first()
    if release is None:
        return "none"
    highlights = list(ReportHighlight.objects.filter(release=release).order_by("pk").values_list("report", "heading"))
    return f"{table.stamp(release)}:{highlights}:{stamp(MEASURED)}"


_TABLE = Freshness(lambda arguments: stamp(), KEEP)
_MEASURED = Freshness(lambda arguments: stamp(MEASURED), DOCUMENT_KEEP)
_RELEASE_REPORT = Freshness(_of_release, DOCUMENT_KEEP)
# By the name of the URL. What is not listed is made for each request.
FRESHNESS: Mapping[str, Freshness] = {
    **dict.fromkeys(("releases", "triage", "triage-as", "escalations", "statistics"), _TABLE),
    **dict.fromkeys(("report", "report-brief", "report-tables", "report-json"), _TABLE),
    **dict.fromkeys(("things", "thing", "thing-as", "search", "search-as"), _TABLE),
    **dict.fromkeys(("curve", "curves", "changes", "kernel", "index-point"), _TABLE),
    **dict.fromkeys(
        ("index", "index-as", "index-suites", "compare", "compare-as", "studies", "study", "study-as"), _MEASURED
    ),
    **dict.fromkeys(("release-report", "release-report-as"), _RELEASE_REPORT),
}
_locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # by key: a page is made by one thread, others wait
_of_locks = Lock()


class CachedPages:
    """The middleware; it stands inside those for headers and sessions."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: View, positional: tuple[Any, ...], arguments: dict[str, Any]
    ) -> HttpResponse | None:
        """Answer from the cache, or make the page and keep it; None for what is not shared."""
        name = request.resolver_match.url_name if request.resolver_match else None
        freshness = FRESHNESS.get(name or "")
        if freshness is None or not settings.PERFWORK_PAGE_CACHE or not _is_shared(request):
            return None
        bucket = int(time.time() // freshness.keep)
        parts = (settings.SECRET_KEY, request.build_absolute_uri(), freshness.stamp(arguments), str(bucket))
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        any_page = request.headers.get("If-None-Match", "").strip() == "*"  # also one that there is not
        if not any_page and (unchanged := get_conditional_response(request, etag=f'W/"{key}"')):
            return _with_headers(unchanged, key)
        if page := caches["pages"].get(key):
            return _response(request, page, key)
        with _of_locks:
            lock = _locks.get(key) or _locks.setdefault(key, Lock())
        with lock:
            if page := caches["pages"].get(key):
                return _response(request, page, key)
            # Keep a page that was made, unless it is an error, or for one reader only
            try:
                response = view(request, *positional, **arguments)
            except InvalidInput as error:  # as `Refusals` answers it where the page is not shared
                return error_response(str(error))
            own = response.cookies or request.META.get("CSRF_COOKIE_NEEDS_UPDATE") or request.session.modified
            if response.status_code != 200 or response.streaming or own:
                return response
            kept = Kept(dict(response.items()), gzip.compress(name_controls(response).content, 6, mtime=0))
            if len(kept.compressed) <= LARGEST:
                caches["pages"].set(key, kept, freshness.keep)
            return _response(request, kept, key)


def _is_shared(request: HttpRequest) -> bool:
    """Whether anybody else would get the same: no cookie says who it is, or holds a message for them."""
    return (
        request.method in ("GET", "HEAD")
        and not (request.COOKIES.keys() - _WITHOUT_MEANING)
        and "Authorization" not in request.headers
    )


def _response(request: HttpRequest, kept: Kept, key: str) -> HttpResponse:
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        response = HttpResponse(kept.compressed, headers={**kept.headers, "Content-Encoding": "gzip"})
    else:
        response = HttpResponse(gzip.decompress(kept.compressed), headers=kept.headers)
    return _with_headers(response, key)


def _with_headers(response: HttpResponse, key: str) -> HttpResponse:
    response["ETag"] = f'W/"{key}"'
    response["Cache-Control"] = "no-cache"  # browsers keep it, and ask whether it is still the same
    patch_vary_headers(response, ("Accept-Encoding", "Cookie"))
    return response
