"""`/help/…`: the documentation as `./manage.py documentation` built it, linked from mail and pages."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import last_modified

# Pages of before 2.0 are parts of others now, under their old names.
_MOVED = {
    **dict.fromkeys(("settings/", "commands/", "keys/", "states/"), "reference"),
    **dict.fromkeys(("accuracy/", "benchmarks/", "reliability/"), "measured"),
    "lab/": "results",
    "outbox/": "mail",
    "comparisons/": "measurements",
    "scale/": "operating",
}
_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}


def _built() -> Mapping[str, Path]:
    """Return the files of the documentation by their address under /help/. No other file is ever read."""
    folder = settings.DOCUMENTATION
    try:
        return _files(folder, folder.stat().st_ino)  # each build is a directory of its own
    except FileNotFoundError:
        return {}


@lru_cache(maxsize=2)
def _files(folder: Path, inode: int) -> Mapping[str, Path]:
    files = [path for path in folder.rglob("*") if path.suffix in _TYPES and path.is_file()]
    return {path.relative_to(folder).as_posix().removesuffix("index.html"): path for path in files}


def _changed_at(request: HttpRequest, name: str = "") -> datetime | None:
    try:
        return datetime.fromtimestamp(_built()[name].stat().st_mtime, UTC)
    except (KeyError, FileNotFoundError):
        return None


@last_modified(_changed_at)
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show a page of the documentation, or a file that it loads."""
    files = _built()
    if not files:
        text = f"The documentation has not been built on this machine: run {settings.PROGRAM} documentation\n"
        return HttpResponse(text, status=503, content_type="text/plain")
    if moved := _MOVED.get(name):
        return redirect(f"{reverse('help', args=[moved])}#{name.rstrip('/')}", permanent=True)
    if f"{name}/" in files:
        return redirect("help", name)
    try:
        return HttpResponse(files[name].read_bytes(), content_type=_TYPES[files[name].suffix])
    except (KeyError, FileNotFoundError):  # or it is being replaced by another build
        raise Http404("there is no such page") from None
