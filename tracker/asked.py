"""What the page families read of a request, and how they turn down what they can't read."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest, HttpResponse, QueryDict


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
