"""`/v5.6/report/`, also as text, Markdown and JSON; its prose is edited in place."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.documents.blocks import Document
from tracker.documents.release_report.compose import SECTIONS, compose
from tracker.domain.errors import InvalidInput
from tracker.models import Release, ReportHighlight
from tracker.pages.documents import editing, in_form, save_text
from tracker.pages.http import cleaned, error_response, permission_required
from tracker.pages.release_report import queries
from tracker.pages.reports.queries import find_report
from tracker.services.accounts.roles import CHANGE_REPORTS


def report(request: HttpRequest, version: str) -> HttpResponse:
    """Show the report; `edit` names the text to edit."""
    release = _release(version)
    try:
        edit = editing(request, queries.document_key(version), SECTIONS)
    except InvalidInput as error:
        return error_response(str(error))
    facts = queries.facts(release, settings.PERFWORK_LAB, timezone.now())
    kernels = [name for name in (facts.base, facts.kernel) if name]
    context = {"release": release, "document": compose(facts), "edit": edit, "kernels": kernels}
    return render(request, "release_report/report.html", context)


def as_form(request: HttpRequest, version: str, form: str) -> HttpResponse:
    """Return the report as text, Markdown or JSON."""
    return in_form(_document(_release(version)), form)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can edit release reports")
def edit(request: HttpRequest) -> HttpResponse:
    """Save one of the texts; earlier versions stay in its history."""
    release = _release(cleaned(request.POST, "version", 30))
    return save_text(request, queries.document_key(release.version), SECTIONS) or redirect(
        "release-report", release.version
    )


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can choose report highlights")
def choose_highlight(request: HttpRequest) -> HttpResponse:
    """Make a report a highlight, under `heading` if one is given; or remove it (`away`)."""
    release, found = _release(cleaned(request.POST, "version", 30)), find_report(cleaned(request.POST, "report", 64))
    if request.POST.get("away"):
        ReportHighlight.objects.filter(release=release, report=found).delete()
        messages.info(request, f"No longer a highlight of the {release.version} report.")
    else:
        heading = " ".join(cleaned(request.POST, "heading", 120).split())
        ReportHighlight.objects.update_or_create(release=release, report=found, defaults={"heading": heading})
        messages.info(request, f"Now a highlight of the {release.version} report.")
    return redirect("report", found.culprit.sha)


def _document(release: Release) -> Document:
    return queries.document(release, settings.PERFWORK_LAB, timezone.now())


def _release(version: str) -> Release:
    release = Release.objects.filter(version=version).first()
    if release is None:
        raise Http404(f"there is no release {version[:40]}")
    return release
