"""When nothing can be stored, or the database can't be used: a page that asks again by itself, and JSON for programs.

What was to be stored and couldn't be, since a disk is full or read-only, is answered by 507 (Insufficient Storage,
RFC 4918). An error of the database makes one log line a minute, without a traceback. LOGGING names this module, so it
is loaded before any model.
"""

import errno
import logging
import sys
import time

from django.conf import settings
from django.db import InterfaceError, ProgrammingError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from tracker.services.database import is_interruption

RETRY, RETRY_STORING = 10, 60  # seconds
_QUIET = 60.0  # seconds between two log lines of a process

_LACKS_MIGRATIONS = f"the database lacks migrations: run `{settings.PROGRAM} migrate`"
_FULL = "nothing can be stored: the disk is full or read-only"
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
# Parts of the messages of SQLite and PostgreSQL, in lower case, and what they mean.
_MEANINGS = (
    (("disk is full", "no space left", "disk full", "readonly database", "read-only transaction"), _FULL),
    (("unable to open database file",), "the database file can't be opened: is it there, and has its disk space?"),
    (("disk i/o error",), "the disk of the database reports an error"),
    (("no such table", "no such column"), _LACKS_MIGRATIONS),
    (("does not exist",), "the database that DATABASE_URL names does not exist"),
    (("database is locked",), "the database is busy"),
)
_UNDEFINED = ("42P01", "42703")  # SQLSTATE undefined_table and undefined_column, which Django makes a ProgrammingError


def reason_of(error: BaseException | None) -> str:
    """Return why nothing can be stored or the database can't be used, or "" if the error is about something else."""
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return _FULL
    if isinstance(error, ProgrammingError) and getattr(error.__cause__, "sqlstate", None) in _UNDEFINED:
        return _LACKS_MIGRATIONS
    if not (is_interruption(error) or isinstance(error, InterfaceError)):
        return ""
    text = str(error).lower()
    meanings = (meaning for parts, meaning in _MEANINGS if any(part in text for part in parts))
    return next(meanings, "the database can't be reached")


def failed(request: HttpRequest) -> HttpResponse:
    """Return a 503 if the database can't be used, a 507 if it can't store, else the page of an error of ours (500)."""
    reason = reason_of(sys.exc_info()[1])
    if not reason:
        return server_error(request)
    return unavailable(request, reason)


def unavailable(request: HttpRequest, reason: str) -> HttpResponse:
    """Return a 503 or a 507 with a reason: a page that asks again by itself, or JSON."""
    status, seconds = (507, RETRY_STORING) if reason == _FULL else (503, RETRY)
    if request.path.startswith("/api/"):
        response: HttpResponse = JsonResponse({"error": f"{reason}; try again in {seconds} seconds"}, status=status)
    else:
        page = render_to_string("unavailable.html", {"reason": reason, "seconds": seconds})
        response = HttpResponse(page, status=status)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response


class OncePerMinute(logging.Filter):
    """Makes one line of an error of the database, without a traceback, and drops more of them for a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        reason = reason_of(error)
        if not reason:
            return True
        if time.monotonic() < self._quiet_until:
            return False
        self._quiet_until = time.monotonic() + _QUIET
        record.msg, record.args = "%s (%s)", (reason, " ".join(str(error).split()))
        record.exc_info = record.exc_text = None
        return True
