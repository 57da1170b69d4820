"""Request parsing and error responses, shared by all pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

View = Callable[[HttpRequest], HttpResponse]


def is_key(text: str) -> bool:
    """Return whether a text is a primary key that every database accepts."""
    return text.isdecimal() and text.isascii() and len(text) < 19


def told(form: QueryDict, name: str, most: int = 2000) -> str:
    """Return a form field cleaned for the database: without NULs, and cut to `most` characters."""
    return form.get(name, "")[:most].replace("\0", "")


def place(request: HttpRequest) -> str:
    """Return the client's network address; behind our proxy, the last one in X-Forwarded-For."""
    if settings.SECURE_PROXY_SSL_HEADER:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def person(request: HttpRequest) -> str:
    """Return the username of the signed-in user."""
    assert isinstance(request.user, AbstractUser)
    return request.user.get_username()


def refused(words: str, status: int = 400) -> HttpResponse:
    """Return a plain-text error response of one line, 400 by default."""
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")


def signed_in(view: View) -> View:
    """Like login_required, but an htmx request gets a 401 with a line of text instead of a redirect."""

    @wraps(view)
    def inner(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated or not request.headers.get("HX-Request"):
            return login_required(view)(request)
        words = "You are signed out, so nothing was changed. Sign in and try again."
        return HttpResponse(words, status=401, content_type="text/plain; charset=utf-8")

    return inner


def only_who_may(permission: str, words: str) -> Callable[[View], View]:
    """Require a permission; signed-in users without it get a 403 with the text `words`."""

    def wrap(view: View) -> View:
        @wraps(view)
        def inner(request: HttpRequest) -> HttpResponse:
            return view(request) if request.user.has_perm(permission) else refused(words, 403)

        return signed_in(inner)

    return wrap


def back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page in `next`, or to / if it is not a page of ours."""
    page = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        page = "/"
    return redirect(page)
