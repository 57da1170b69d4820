"""HTTP responses with documents, and in-place editing of their prose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from tracker.documents.blocks import Document
from tracker.documents.forms import FORMS
from tracker.domain.errors import InvalidInput
from tracker.models import TextRevision
from tracker.pages.http import person, refused, told
from tracker.services.accounts.roles import CHANGE_REPORTS
from tracker.services.revisions import versions, write


def in_form(document: Document, form: str) -> HttpResponse:
    """Return the document as text, Markdown or JSON."""
    write_out, kind = FORMS[form]
    return HttpResponse(write_out(document, settings.PERFWORK_BASE_URL), content_type=f"{kind}; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Editing:
    """What a page needs for editing: the editable texts, the one being edited, and its versions."""

    places: Mapping[str, str]
    edited: str
    history: list[TextRevision]
    may_write: bool


def editing(request: HttpRequest, place: str, places: Mapping[str, str]) -> Editing:
    """Return the editing state for the query's `edit`; raises InvalidInput for an unknown text."""
    name = request.GET.get("edit", "")
    if name and name not in places:
        raise InvalidInput(f"edit: expected one of {', '.join(places)}; found {name[:40]!r}")
    return Editing(places, name, versions(place, name) if name else [], request.user.has_perm(CHANGE_REPORTS))


def written(request: HttpRequest, place: str, places: Mapping[str, str]) -> HttpResponse | None:
    """Save a text from a form. Returns an error response if that is not possible."""
    name = told(request.POST, "name", 30)
    if name not in places:
        return refused(f"name: expected one of {', '.join(places)}; found {name!r}")
    try:
        done = write(place, name, request.POST.get("text", ""), person(request), timezone.now())
    except InvalidInput as unfit:
        return refused(f"text: {unfit}")
    messages.info(request, "Saved." if done else "Nothing has changed.")
    return None
