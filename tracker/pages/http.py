"""Request parsing and error responses, shared by all pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

View = Callable[[HttpRequest], HttpResponse]


def is_key(text: str) -> bool:
    """Return whether a text is a primary key that every database accepts."""
    return text.isdecimal() and text.isascii() and len(text) < 19


def cleaned(form: QueryDict, name: str, max_length: int = 2000) -> str:
    """Return a form field cleaned for the database: without NULs, and cut to `max_length` characters."""
    return form.get(name, "")[:max_length].replace("\0", "")


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


def error_response(message: str, status: int = 400) -> HttpResponse:
    """Return a plain-text error response of one line, 400 by default."""
    return HttpResponse(message, status=status, content_type="text/plain; charset=utf-8")


def sign_in_required(view: View) -> View:
    """Like login_required, but an htmx request gets a 401 with a line of text instead of a redirect."""

    @wraps(view)
    def inner(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated or not request.headers.get("HX-Request"):
            return login_required(view)(request)
        message = "You are signed out, so nothing was changed. Sign in and try again."
        return HttpResponse(message, status=401, content_type="text/plain; charset=utf-8")

    return inner


def permission_required(permission: str, message: str) -> Callable[[View], View]:
    """Require a permission; signed-in users without it get a 403 with the text `message`."""

    def wrap(view: View) -> View:
        @wraps(view)
        def inner(request: HttpRequest) -> HttpResponse:
            return view(request) if request.user.has_perm(permission) else error_response(message, 403)

        return sign_in_required(inner)

    return wrap


def redirect_back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page in `next`, or to / if it is not a page of ours."""
    url = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure()):
        url = "/"
    return redirect(url)
