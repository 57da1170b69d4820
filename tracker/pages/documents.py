"""Documents as answers to browsers, and the prose in them as it is edited where it stands."""

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
    """The document as text, Markdown or JSON."""
    write_out, kind = FORMS[form]
    return HttpResponse(write_out(document, settings.PERFWORK_BASE_URL), content_type=f"{kind}; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Editing:
    """What a page needs to let people write: the texts that there are, the one that is edited, and its versions."""

    places: Mapping[str, str]
    edited: str
    history: list[TextRevision]
    may_write: bool


def editing(request: HttpRequest, place: str, places: Mapping[str, str]) -> Editing:
    """By `edit` of the address; Unfit where there is no such text. `place`: where its versions are kept."""
    name = request.GET.get("edit", "")
    if name and name not in places:
        raise InvalidInput(f"edit: expected one of {', '.join(places)}; found {name[:40]!r}")
    return Editing(places, name, versions(place, name) if name else [], request.user.has_perm(CHANGE_REPORTS))


def written(request: HttpRequest, place: str, places: Mapping[str, str]) -> HttpResponse | None:
    """Keep what a form says of one of the texts; a refusal where it can't be kept."""
    name = told(request.POST, "name", 30)
    if name not in places:
        return refused(f"name: expected one of {', '.join(places)}; found {name!r}")
    try:
        done = write(place, name, request.POST.get("text", ""), person(request), timezone.now())
    except InvalidInput as unfit:
        return refused(f"text: {unfit}")
    messages.info(request, "Written." if done else "It says so already.")
    return None
