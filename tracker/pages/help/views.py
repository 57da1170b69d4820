"""`/help/…`: the documentation as it was built (`./manage.py documentation`), linked from mail and from other pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import last_modified

_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}


@cache
def built(folder: Path) -> Mapping[str, Path]:
    """Return the files of the documentation by their address under /help/. No other file is ever read."""
    files = [each for each in folder.rglob("*") if each.suffix in _TYPES and each.is_file()]
    return {each.relative_to(folder).as_posix().removesuffix("index.html"): each for each in files}


def _changed_at(request: HttpRequest, name: str = "") -> datetime | None:
    file = built(settings.DOCUMENTATION).get(name)
    return datetime.fromtimestamp(file.stat().st_mtime, UTC) if file else None


@last_modified(_changed_at)
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show a page of the documentation, or a file that it loads."""
    files = built(settings.DOCUMENTATION)
    if not files:
        built.cache_clear()  # it may be built meanwhile
        text = "The documentation has not been built on this machine: run ./manage.py documentation\n"
        return HttpResponse(text, status=503, content_type="text/plain")
    if name not in files:
        raise Http404("there is no such page")
    return HttpResponse(files[name].read_bytes(), content_type=_TYPES[files[name].suffix])
