"""What all pages share: reading requests, error responses, permissions, keyset paging, and the links in the header.

An error is one line of plain text; a view may raise it as InvalidInput. Text from a form is cut, and cleaned of NULs,
which no database stores.

With keyset paging a page starts after the values of the previous page's last row, its cursor, so that deep pages cost
no more than the first. The last column of an order is unique; NULLs come first when ascending, last when descending.
A cursor comes from a URL, so every value is converted to the type of its column, and what does not fit is rejected.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeVar, cast
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractUser
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import OrderBy
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from tracker import __version__
from tracker.documents.csv_tables import Columns, Row, csv_lines
from tracker.domain.events import InvalidInput
from tracker.models import Decision, OfferedReport, OutgoingMail, OutgoingState, Suggestion
from tracker.services.accounts import DECIDE, SEND

# --- Requests and errors ---

View = Callable[..., HttpResponse]
Value = TypeVar("Value")
Model = TypeVar("Model", bound=models.Model)


def is_key(text: str) -> bool:
    """Return whether a text is a primary key that every database accepts."""
    return text.isdecimal() and text.isascii() and len(text) < 19


def key_in(query: QueryDict, name: str) -> int | None:
    """Return the primary key in a field of a query; None if there is none. Raises InvalidInput for what is no key."""
    text = query.get(name, "")
    if text and not is_key(text):
        raise InvalidInput(f"{name}: expected a number; found {text[:40]!r}")
    return int(text) if text else None


def row_or_404(rows: QuerySet[Model], missing: str) -> Model:
    """Return the only one of some rows; raise Http404 with what is missing, as the page then says, if there is none."""
    row = rows.first()
    if row is None:
        raise Http404(missing)
    return row


def cleaned(form: QueryDict, name: str, max_length: int = 2000) -> str:
    """Return a form field cleaned for the database: without NULs, and cut to `max_length` characters."""
    return form.get(name, "")[:max_length].replace("\0", "")


def kept(key: str, make: Callable[[], Value], seconds: float) -> Value:
    """Return a value from the cache; where it is not there, it is made, and kept for some seconds."""
    return cast("Value", cache.get_or_set(key, make, seconds))


def without_empty(request: HttpRequest) -> str:
    """Return the address of a form's query without its empty fields, which nobody needs to see or to pass on; "" if
    there are none.
    """
    if "" not in (value for values in request.GET.lists() for value in values[1]):
        return ""
    left = request.GET.copy()
    for name, values in request.GET.lists():
        left.setlist(name, [value for value in values if value])
    return f"{request.path}?{left.urlencode(safe='!')}" if any(left.values()) else request.path


def username(request: HttpRequest) -> str:
    """Return the username of the signed-in user."""
    assert isinstance(request.user, AbstractUser)
    return request.user.get_username()


class ErrorLine(HttpResponse):
    """A refusal of one line, as plain text for programs; `Refusals` makes a page of it for browsers."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status=status, content_type="text/plain; charset=utf-8")
        self.message = message


def error_response(message: str, status: int = 400) -> HttpResponse:
    """Return an error of one line, 400 by default: a page for a browser, plain text for programs and htmx."""
    return ErrorLine(message, status)


def csv_response(columns: Columns[Row], rows: Iterable[Row]) -> StreamingHttpResponse:
    """Return a table as CSV, made while it is sent: of a hundred thousand rows some hundreds are in memory."""
    return StreamingHttpResponse(csv_lines(columns, rows), content_type="text/csv; charset=utf-8")


_TITLES = {400: "Not understood", 401: "Signed out", 403: "Not permitted", 404: "Not found", 409: "Changed meanwhile"}


class ApiError(Exception):
    """A request of a program that is refused: answered with the status and, as JSON, the sentence."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.response = JsonResponse({"error": sentence}, status=status, headers=headers)


class Refusals:
    """The middleware that answers a view's InvalidInput with its line and ApiError with its response, and shows a
    refusal as a page to whoever asks for HTML.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        wants_page = "text/html" in request.headers.get("Accept", "") and not request.headers.get("HX-Request")
        if not isinstance(response, ErrorLine) or not wants_page:
            return response
        title = _TITLES.get(response.status_code, "Refused")
        may_sign_in = response.status_code == HTTPStatus.FORBIDDEN and not request.user.is_authenticated
        context = {"title": title, "message": response.message, "may_sign_in": may_sign_in}
        return render(request, "refused.html", context, status=response.status_code)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, ApiError):
            return error.response
        return error_response(str(error)) if isinstance(error, InvalidInput) else None


def sign_in_required(view: View) -> View:
    """Like login_required, but an htmx request gets a 401 with a line of text instead of a redirect."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated or not request.headers.get("HX-Request"):
            return login_required(view)(request, *args, **kwargs)
        return error_response("You are signed out, so nothing was changed. Sign in and try again.", 401)

    return inner


def permission_required(permission: str, message: str) -> Callable[[View], View]:
    """Require a permission; signed-in users without it get a 403 with the text `message`."""

    def wrap(view: View) -> View:
        @wraps(view)
        @sign_in_required
        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.user.has_perm(permission):
                return view(request, *args, **kwargs)
            return error_response(message, 403)

        return inner

    return wrap


def next_url(request: HttpRequest) -> str:
    """Return the page in `next`, or / if it is not a page of ours."""
    url = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())
    return url if is_ours else "/"


# Characters that turn or break a line, in UTF-8: controls but tab, CR and LF; marks, embeddings, overrides, isolates.
_TURNING = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)


def name_controls(response: HttpResponse) -> HttpResponse:
    """Show such characters in a page by their names, as U+202E: what stands in a title can't make a page say something
    else. Packed pages stay as they are.
    """
    is_page = not response.streaming and response.get("Content-Type", "").startswith("text/html")
    if is_page and "Content-Encoding" not in response and _TURNING.search(response.content):
        response.content = _TURNING.sub(lambda found: b"[U+%04X]" % ord(found[0].decode()), response.content)
    return response


def path_of(url: str) -> str:
    """Return path and query of an address of ours, which then lead nowhere else: "//host/" is another host's."""
    page = urlsplit(url)
    return urlunsplit(("", "", "/" + page.path.lstrip("/\\"), page.query, ""))


def redirect_back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page in `next`, or to / if it is not a page of ours."""
    return redirect(next_url(request))


# --- Keyset paging ---

MAX_CURSOR = 4000  # characters, since it is part of a URL


class CursorError(ValueError):
    """The cursor is invalid."""


@dataclass(frozen=True, slots=True)
class Key:
    """A column to order by. If it is `nullable`, NULLs come first when ascending, last when descending."""

    name: str
    descending: bool = False
    nullable: bool = False

    def reversed(self) -> Key:
        return Key(self.name, not self.descending, self.nullable)

    def order(self) -> OrderBy:
        if self.descending:
            return F(self.name).desc(nulls_last=self.nullable or None)
        return F(self.name).asc(nulls_first=self.nullable or None)

    def after(self, value: Any) -> Q:
        """Return a condition for the rows after a value."""
        if value is None:
            return Q(pk__in=()) if self.descending else Q(**{f"{self.name}__isnull": False})
        more = Q(**{f"{self.name}__{'lt' if self.descending else 'gt'}": value})
        return more | Q(**{f"{self.name}__isnull": True}) if self.descending and self.nullable else more

    def equal_to(self, value: Any) -> Q:
        return Q(**{f"{self.name}__isnull": True}) if value is None else Q(**{self.name: value})


@dataclass(frozen=True, slots=True)
class Order:
    """Columns to order by; the last of them is unique."""

    keys: tuple[Key, ...]

    def reversed(self) -> Order:
        """Return the reverse order."""
        return Order(tuple(key.reversed() for key in self.keys))

    def sorted(self, rows: QuerySet[Model]) -> QuerySet[Model]:
        return rows.order_by(*(key.order() for key in self.keys))

    def after(self, values: Sequence[Any]) -> Q:
        """Return a condition for the rows after the row with these values."""
        condition, same = Q(), Q()
        for key, value in zip(self.keys, values, strict=True):
            condition |= same & key.after(value)
            same &= key.equal_to(value)
        return condition

    def cursor(self, row: Mapping[str, Any]) -> str:
        """Return the cursor of a row, as text for a URL."""
        columns = [row[key.name] for key in self.keys]
        values = [value.isoformat() if isinstance(value, datetime) else value for value in columns]
        return base64.urlsafe_b64encode(json.dumps(values, ensure_ascii=False).encode()).decode().rstrip("=")

    def values(self, cursor: str, model: type[models.Model]) -> list[Any]:
        """Return a cursor's values, converted to the types of their columns; raise CursorError if it is invalid."""
        try:
            padded = cursor[:MAX_CURSOR] + "=" * (-len(cursor) % 4)
            parsed = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            if not isinstance(parsed, list) or len(parsed) != len(self.keys):
                raise CursorError(cursor)
            return [_from_json(model, key.name, value) for key, value in zip(self.keys, parsed, strict=True)]
        except (binascii.Error, ValueError, ValidationError, TypeError, OverflowError, RecursionError) as error:
            raise CursorError(cursor) from error


def _from_json(model: type[models.Model], name: str, parsed: Any) -> Any:
    """Convert a JSON value to the type of a column; raise ValueError if it does not fit."""
    if isinstance(parsed, (list, dict, bool)):
        raise CursorError(name)
    field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    assert isinstance(field, models.Field)
    value = field.to_python(parsed)
    if isinstance(value, str) and ("\0" in value or len(value.encode()) > MAX_CURSOR):
        raise CursorError(name)
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise CursorError(name)
    return value


# --- The links in the header of every page ---
# The current one is marked, and badges say how much waits. Only those who may act on what waits see its page there, and
# its badge; the pages of the lab are open to all.

_MOST_WAITING = 99  # a badge counts no further
_KEEP_BADGE = 15.0  # seconds

# Menus and their pages: a label, and the name and arguments of the URL.
_MENUS: Sequence[tuple[str, Sequence[tuple[str, str, tuple[str, ...]]]]] = (
    ("", [("Releases", "releases", ())]),
    (
        "Reports",
        [
            ("Escalations", "escalations", ()),
            ("Statistics", "statistics", ()),
            *((f"By {kind}", "things", (kind,)) for kind in ("subsystem", "author", "machine", "metric")),
        ],
    ),
    (
        "Measurements",
        [
            ("Unreported changes", "changes", ()),
            ("Performance index", "index", ()),
            ("Compare kernels", "compare", ()),
            ("Studies", "studies", ()),
        ],
    ),
    (
        "The lab",
        [
            ("Results", "results", ()),
            ("Work list", "lab", ()),
            ("Review queue", "review", ()),
            ("Outbox", "outbox", ()),
        ],
    ),
    ("", [("Help", "help-index", ())]),
)
# Questions over all releases, at the end of the menu "Reports".
_QUESTIONS = (
    ("Fix posted", "state:fix_proposed"),
    ("Fix queued", "state:fix_queued"),
    ("Fix missing in stable", "stable:missing"),
    ("Blocking a release", "blocking:yes state:open"),
)


@dataclass(frozen=True, slots=True)
class NavLink:
    """A link of the header. `badge`: how much waits there, "" for nothing or for who can't act on it."""

    label: str
    url: str
    is_current: bool
    badge: str = ""


@dataclass(frozen=True, slots=True)
class NavMenu:
    """Some links under a label; without a label they stand in the header itself."""

    label: str
    links: Sequence[NavLink]

    @property
    def is_current(self) -> bool:
        return any(link.is_current for link in self.links)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The context processor: `navigation` is built when a template asks for it; `installation` is for the footer;
    `program` is how commands are called here.
    """
    installation = {  # not `site`, which Django's own sign-in view sets
        "name": settings.PERFWORK_LAB,
        "contact": settings.PERFWORK_LIST_ADDRESS,
        "version": __version__,
    }
    return {"navigation": lambda: _navigation(request), "installation": installation, "program": settings.PROGRAM}


def _navigation(request: HttpRequest) -> dict[str, Any]:
    """Return the menus for everybody, and the pages on which this person may act."""
    path, operations = request.path, _own_pages(request)
    own = {link.url for link in operations}
    menus = []
    for label, pages in _MENUS:
        addresses = [(text, reverse(name, args=args)) for text, name, args in pages]
        links = [
            NavLink(text, url, path.startswith(url) if label == "The lab" else path == url)
            for text, url in addresses
            if url not in own
        ]
        for text, query in _QUESTIONS if label == "Reports" else ():
            url = f"{reverse('search')}?{urlencode({'q': query})}"
            links.append(NavLink(text, url, request.get_full_path() == url))
        menus.append(NavMenu(label, links))
    return {"menus": menus, "operations": operations}


def _own_pages(request: HttpRequest) -> list[NavLink]:
    """Return the pages on which this person may act, with how much waits there."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return []
    pages: list[tuple[str, str, QuerySet[Any, Any]]] = []
    if user.has_perm(DECIDE):
        suggestions, offers = (
            rows.filter(decision=Decision.OPEN).order_by() for rows in (Suggestion.objects, OfferedReport.objects)
        )
        pages.append(("To review", "review", suggestions.values("pk").union(offers.values("pk"), all=True)))
    if user.has_perm(SEND):
        waiting = OutgoingMail.objects.filter(state__in=(OutgoingState.COMPOSED, OutgoingState.HELD))
        pages.append(("Operating", "operating", waiting.values("pk")))
    return [
        NavLink(label, url := reverse(name), request.path.startswith(url), _badge(name, rows))
        for label, name, rows in pages
    ]


def _badge(name: str, rows: QuerySet[Any, Any]) -> str:
    """Return the number of rows up to _MOST_WAITING; counted again after some seconds."""
    number = kept(f"waiting:{name}", rows[: _MOST_WAITING + 1].count, _KEEP_BADGE)
    return "" if not number else str(number) if number <= _MOST_WAITING else f"{_MOST_WAITING}+"
