"""`/compare/`: any kernels side by side; `/studies/`: comparisons saved under a name."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.documents.study.compose import SECTIONS
from tracker.domain.errors import InvalidInput
from tracker.models import Study
from tracker.pages.documents import editing, in_form, save_text
from tracker.pages.http import cleaned, error_response, permission_required
from tracker.pages.index.moved_tests import counted_in_index
from tracker.pages.kernels import queries as comparison
from tracker.pages.studies import create, queries
from tracker.services.accounts.roles import CHANGE_REPORTS


def compare(request: HttpRequest, form: str = "") -> HttpResponse:
    """Compare the kernels of `of`, in the order given; without any, show those that can be chosen."""
    handles = [handle for handle in request.GET.getlist("of") if handle]
    try:
        chosen = create.choose(handles)
    except InvalidInput as error:
        return error_response(str(error))
    if form:
        return in_form(queries.ad_hoc(chosen), form) if chosen else error_response("of: expected kernels, found none")
    lines = comparison.compare(chosen) if chosen else []
    kernels = comparison.kernels()
    context = {
        "kernels": kernels,
        "has_commits": any(each.is_commit for each in kernels),
        "handles": handles,
        "document": queries.ad_hoc(chosen, lines) if chosen else None,
        "in_index": counted_in_index(chosen, lines),
        "query": request.GET.urlencode(),
        "others": [(each, _first(each, handles)) for each in handles[1:]],
        "may_write": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "studies/compare.html", context)


def _first(handle: str, handles: list[str]) -> str:
    """Return the query of the same comparison with this kernel as the baseline."""
    return urlencode([("of", handle), *(("of", other) for other in handles if other != handle)])


def studies(request: HttpRequest) -> HttpResponse:
    """List the studies, newest first."""
    return render(request, "studies/list.html", {"studies": Study.objects.prefetch_related("columns__kernel")[:200]})


def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a study; `edit` names the text to edit."""
    found = _study(slug)
    try:
        edit = editing(request, queries.document_key(slug), SECTIONS)
    except InvalidInput as error:
        return error_response(str(error))
    return render(request, "studies/study.html", {"study": found, "document": queries.document(found), "edit": edit})


def as_form(request: HttpRequest, slug: str, form: str) -> HttpResponse:
    """Return a study as text, Markdown or JSON."""
    return in_form(queries.document(_study(slug)), form)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can create studies")
def save_study(request: HttpRequest) -> HttpResponse:
    """Save a comparison as a study."""
    slug, title = cleaned(request.POST, "slug", 60), " ".join(cleaned(request.POST, "title", 300).split())
    try:
        create.make(slug, title, "", request.POST.getlist("of"), timezone.now())
    except InvalidInput as error:
        return error_response(str(error))
    return redirect("study", slug)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can edit studies")
def edit(request: HttpRequest) -> HttpResponse:
    """Save one of the texts of a study."""
    found = _study(cleaned(request.POST, "slug", 60))
    return save_text(request, queries.document_key(found.slug), SECTIONS) or redirect("study", found.slug)


def _study(slug: str) -> Study:
    found = Study.objects.filter(slug=slug).first()
    if found is None:
        raise Http404(f"there is no study {slug[:80]}")
    return found
