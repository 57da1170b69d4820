"""What the page families read of a request, and how they turn down what they can't read."""

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
    """Whether a text is the key of a row, in digits that every database takes."""
    return text.isdecimal() and text.isascii() and len(text) < 19


def told(form: QueryDict, name: str, most: int = 2000) -> str:
    """A text of a form, as every database can hold it: without NULs, and no longer than that."""
    return form.get(name, "")[:most].replace("\0", "")


def place(request: HttpRequest) -> str:
    """The network address of who asks; behind a proxy of ours, the one that it has told last."""
    if settings.SECURE_PROXY_SSL_HEADER:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def person(request: HttpRequest) -> str:
    """Who is logged in."""
    assert isinstance(request.user, AbstractUser)
    return request.user.get_username()


def refused(words: str, status: int = 400) -> HttpResponse:
    """400 or what else fits, with what is wrong in a line."""
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")


def signed_in(view: View) -> View:
    """For those who are signed in. Others are led to the door; what a script asked for is told in a line."""

    @wraps(view)
    def inner(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated or not request.headers.get("HX-Request"):
            return login_required(view)(request)
        words = "You are signed out, so nothing was changed: sign in, and do it again."
        return HttpResponse(words, status=401, content_type="text/plain; charset=utf-8")

    return inner


def only_who_may(permission: str, words: str) -> Callable[[View], View]:
    """For those who have a right; who is signed in and has it not is told so in `words`."""

    def wrap(view: View) -> View:
        @wraps(view)
        def inner(request: HttpRequest) -> HttpResponse:
            return view(request) if request.user.has_perm(permission) else refused(words, 403)

        return signed_in(inner)

    return wrap


def back(request: HttpRequest) -> HttpResponse:
    """To the page that a form was on: `next`, where that is a page of ours."""
    page = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        page = "/"
    return redirect(page)
