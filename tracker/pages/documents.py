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
from tracker.pages.http import cleaned, error_response, username
from tracker.services.accounts.roles import CHANGE_REPORTS
from tracker.services.revisions import versions, write


def in_form(document: Document, form: str) -> HttpResponse:
    """Return the document as text, Markdown or JSON."""
    write_out, kind = FORMS[form]
    return HttpResponse(write_out(document, settings.PERFWORK_BASE_URL), content_type=f"{kind}; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Editing:
    """What a page needs for editing: the editable texts and their titles, the one being edited, and its versions."""

    titles: Mapping[str, str]
    edited: str
    history: list[TextRevision]
    may_write: bool


def editing(request: HttpRequest, document_key: str, titles: Mapping[str, str]) -> Editing:
    """Return the editing state for the query's `edit`; raises InvalidInput for an unknown text."""
    name = request.GET.get("edit", "")
    if name and name not in titles:
        raise InvalidInput(f"edit: expected one of {', '.join(titles)}; found {name[:40]!r}")
    return Editing(titles, name, versions(document_key, name) if name else [], request.user.has_perm(CHANGE_REPORTS))


def save_text(request: HttpRequest, document_key: str, titles: Mapping[str, str]) -> HttpResponse | None:
    """Save a text from a form. Returns an error response if that is not possible."""
    name = cleaned(request.POST, "name", 30)
    if name not in titles:
        return error_response(f"name: expected one of {', '.join(titles)}; found {name!r}")
    try:
        is_changed = write(document_key, name, request.POST.get("text", ""), username(request), timezone.now())
    except InvalidInput as error:
        return error_response(f"text: {error}")
    messages.info(request, "Saved." if is_changed else "Nothing has changed.")
    return None
