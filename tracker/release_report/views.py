"""`/v5.6/report/`, and the same as Markdown and as text; the prose in it is edited where it stands."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.asked import only_who_may, person, refused, told
from tracker.document import markdown, text
from tracker.document.blocks import Document
from tracker.models import Detail, Release
from tracker.people.roles import CHANGE_REPORTS
from tracker.release_report import queries
from tracker.release_report.compose import PLACES
from tracker.reports.queries import find_report
from tracker.writings import Unfit, versions, write

_FORMS: dict[str, tuple[Callable[[Document, str], str], str]] = {
    "txt": (text.render, "text/plain; charset=utf-8"),
    "md": (markdown.render, "text/markdown; charset=utf-8"),
}


def report(request: HttpRequest, version: str) -> HttpResponse:
    """The report as a page; `edit` names the prose that is to be edited."""
    release = _release(version)
    name = request.GET.get("edit", "")
    if name and name not in PLACES:
        return refused(f"edit: expected one of {', '.join(PLACES)}; found {name[:40]!r}")
    shown = {
        "release": release,
        "document": queries.document(release, settings.PERFWORK_LAB),
        "places": PLACES,
        "may_write": request.user.has_perm(CHANGE_REPORTS),
        "edited": name,
        "history": versions(queries.place(version), name) if name else (),
    }
    return render(request, "release_report/report.html", shown)


def as_text(request: HttpRequest, version: str, form: str) -> HttpResponse:
    """The report as Markdown or as text."""
    write_out, content_type = _FORMS[form]
    document = queries.document(_release(version), settings.PERFWORK_LAB)
    return HttpResponse(write_out(document, settings.PERFWORK_BASE_URL), content_type=content_type)


@require_POST
@only_who_may(CHANGE_REPORTS, "only triagers write into release reports")
def edit(request: HttpRequest) -> HttpResponse:
    """Write one of the texts; what stood there before stays in its history."""
    version, name = told(request.POST, "version", 30), told(request.POST, "name", 30)
    if name not in PLACES:
        return refused(f"name: expected one of {', '.join(PLACES)}; found {name!r}")
    release = _release(version)
    words, where = request.POST.get("text", ""), queries.place(release.version)
    try:
        done = write(where, name, words, person(request), timezone.now())
    except Unfit as unfit:
        return refused(f"text: {unfit}")
    messages.info(request, "Written." if done else "It says so already.")
    return redirect("release-report", release.version)


@require_POST
@only_who_may(CHANGE_REPORTS, "only triagers choose what is told in detail")
def choose(request: HttpRequest) -> HttpResponse:
    """Tell of a report in a section of its own, or no longer."""
    release, found = _release(told(request.POST, "version", 30)), find_report(told(request.POST, "report", 64))
    heading = " ".join(told(request.POST, "heading", 120).split())
    row, made = Detail.objects.get_or_create(release=release, report=found, defaults={"heading": heading})
    if not made:
        row.delete()
    messages.info(request, f"{'Told' if made else 'No longer told'} in detail in the report of {release.version}.")
    return redirect("report", found.culprit.sha)


def _release(version: str) -> Release:
    release = Release.objects.filter(version=version).first()
    if release is None:
        raise Http404(f"there is no release {version[:40]}")
    return release
