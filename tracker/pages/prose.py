"""Pages of prose: texts that people write, shown, edited in place and part of documents; and `/help/`.

Of each text it is known who wrote which version, and the newest is shown. Documents are returned as text, Markdown or
JSON. The documentation under `/help/`, which mail and pages link to, is as `./manage.py documentation` built it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import last_modified

from tracker.documents.blocks import FORMS, Document
from tracker.domain.events import InvalidInput
from tracker.models import TextRevision
from tracker.pages.http import cleaned, username
from tracker.services.accounts import CHANGE_REPORTS
from tracker.services.report_summary import clipped

# --- Texts and their versions ---

LONGEST = 20_000  # characters of a text
MOST = 2_000  # versions per place


def texts(page: str) -> Mapping[str, TextRevision]:
    """Return the newest version of every non-empty text of a place, in order of first appearance. One query."""
    return newest(TextRevision.objects.filter(place=page).order_by("pk")[:MOST])


@dataclass(frozen=True, slots=True)
class Comment:
    """A text with its original author; `row` is the current version, with its author."""

    author: str
    row: TextRevision


def comments(page: str, most: int) -> list[Comment]:
    """Return the newest `most` comments of a place, in order. One query."""
    rows = list(TextRevision.objects.filter(place=page).order_by("pk")[:MOST])
    authors: dict[str, str] = {}
    for row in rows:
        authors.setdefault(row.name, row.by)
    return [Comment(authors[name], row) for name, row in newest(rows).items()][-most:]


def newest(rows: Iterable[TextRevision]) -> dict[str, TextRevision]:
    """Return the last row of each name, except where it is empty. Pure."""
    by_name = {row.name: row for row in rows}
    return {name: row for name, row in by_name.items() if row.text.strip()}


def versions(page: str, name: str, most: int = MOST) -> list[TextRevision]:
    """Return the versions of a text, newest first."""
    return list(TextRevision.objects.filter(place=page, name=name).order_by("-pk")[:most])


NOTED = ("machine", "metric", "subsystem")  # kinds of names that people may write a note on


def note_place(kind: str, name: str) -> str:
    return f"{kind} {clipped(name)}"  # as reports have it


def notes(names: Iterable[tuple[str, str]]) -> list[tuple[str, str, TextRevision]]:
    """Return the notes on these names, given by kind: kind, name and text of each that has one. One query."""
    places = {note_place(kind, name): (kind, name) for kind, name in names if name}
    last = {row.place: row for row in TextRevision.objects.filter(place__in=places, name="note").order_by("pk")}
    return [(*places[place], row) for place, row in last.items() if row.text]


def write(page: str, name: str, text: str, by: str, now: datetime) -> TextRevision | None:
    """Add a version. Returns None if the text is unchanged; raises InvalidInput for too long a text or too many."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip()
    if len(text) > LONGEST:
        raise InvalidInput(f"text: expected at most {LONGEST:,} characters, found {len(text):,}")
    last = TextRevision.objects.filter(place=page, name=name).order_by("-pk").first()
    if (last.text if last else "") == text:
        return None
    if TextRevision.objects.filter(place=page).count() >= MOST:
        raise InvalidInput(f"text: there are already {MOST} versions of texts here")
    return TextRevision.objects.create(place=page, name=name, text=text, by=by, at=now)


# --- Documents and editing ---


def in_form(document: Document, form: str) -> HttpResponse:
    """Return the document as text, Markdown or JSON."""
    write_out, kind = FORMS[form]
    return HttpResponse(write_out(document, settings.PERFWORK_BASE_URL), content_type=f"{kind}; charset=utf-8")


def editing(request: HttpRequest, document_key: str, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return what a page needs for editing: the editable texts with their titles, the one that the query's `edit` names
    with its versions, and whether this person may write. Raises InvalidInput for an unknown text.
    """
    name = request.GET.get("edit", "")
    if name and name not in titles:
        raise InvalidInput(f"edit: expected one of {', '.join(titles)}; found {name[:40]!r}")
    history = versions(document_key, name) if name else []
    return {"titles": titles, "edited": name, "history": history, "may_write": request.user.has_perm(CHANGE_REPORTS)}


def save_text(request: HttpRequest, document_key: str, titles: Mapping[str, str]) -> None:
    """Save a text from a form. Raises InvalidInput if that is not possible."""
    name = cleaned(request.POST, "name", 30)
    if name not in titles:
        raise InvalidInput(f"name: expected one of {', '.join(titles)}; found {name!r}")
    is_changed = write(document_key, name, request.POST.get("text", ""), username(request), timezone.now())
    messages.info(request, "Saved." if is_changed else "Nothing has changed.")


# --- `/help/…` ---

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
def help_page(request: HttpRequest, name: str = "") -> HttpResponse:
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
