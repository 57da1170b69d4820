"""`/compare/`: any kernels side by side; `/studies/`: those that have a name."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.asked import only_who_may, person, refused, told
from tracker.comparison import queries as comparison
from tracker.document import markdown, text
from tracker.document.blocks import Document
from tracker.models import Study
from tracker.people.roles import CHANGE_REPORTS
from tracker.studies import making, queries
from tracker.studies.compose import PLACES
from tracker.writings import Unfit, versions, write

_FORMS = {"txt": (text.render, "text/plain"), "md": (markdown.render, "text/markdown")}


def compare(request: HttpRequest, form: str = "") -> HttpResponse:
    """The kernels of `of`, in the order asked for; without any, all that can be chosen."""
    handles = [handle for handle in request.GET.getlist("of") if handle]
    try:
        chosen = making.choose(handles)
    except making.Unfit as unfit:
        return refused(str(unfit))
    if form:
        return _written(queries.ad_hoc(chosen), form) if chosen else refused("of: expected kernels, found none")
    shown = {
        "kernels": comparison.kernels(),
        "handles": handles,
        "document": queries.ad_hoc(chosen) if chosen else None,
        "query": request.GET.urlencode(),
        "may_write": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "studies/compare.html", shown)


def studies(request: HttpRequest) -> HttpResponse:
    """Those that have a name, the newest first."""
    return render(request, "studies/list.html", {"studies": Study.objects.prefetch_related("columns__kernel")[:200]})


def study(request: HttpRequest, slug: str, form: str = "") -> HttpResponse:
    """One study; `edit` names the prose that is to be edited."""
    found = _study(slug)
    name = request.GET.get("edit", "")
    if name and name not in PLACES:
        return refused(f"edit: expected one of {', '.join(PLACES)}; found {name[:40]!r}")
    document = queries.document(found)
    if form:
        return _written(document, form)
    shown = {
        "study": found,
        "document": document,
        "places": PLACES,
        "may_write": request.user.has_perm(CHANGE_REPORTS),
        "edited": name,
        "history": versions(queries.place(slug), name) if name else (),
    }
    return render(request, "studies/study.html", shown)


def _study(slug: str) -> Study:
    found = Study.objects.filter(slug=slug).first()
    if found is None:
        raise Http404(f"there is no study {slug[:80]}")
    return found


def _written(document: Document, form: str) -> HttpResponse:
    write_out, kind = _FORMS[form]
    return HttpResponse(write_out(document, settings.PERFWORK_BASE_URL), content_type=f"{kind}; charset=utf-8")


@require_POST
@only_who_may(CHANGE_REPORTS, "only triagers make studies")
def keep(request: HttpRequest) -> HttpResponse:
    """Give a comparison a name."""
    slug, title = told(request.POST, "slug", 60), " ".join(told(request.POST, "title", 300).split())
    try:
        making.make(slug, title, told(request.POST, "kind", 20), request.POST.getlist("of"), timezone.now())
    except making.Unfit as unfit:
        return refused(str(unfit))
    return redirect("study", slug)


@require_POST
@only_who_may(CHANGE_REPORTS, "only triagers write into studies")
def edit(request: HttpRequest) -> HttpResponse:
    """Write one of the texts of a study."""
    slug, name = told(request.POST, "slug", 60), told(request.POST, "name", 30)
    if name not in PLACES:
        return refused(f"name: expected one of {', '.join(PLACES)}; found {name!r}")
    _study(slug)
    try:
        done = write(queries.place(slug), name, request.POST.get("text", ""), person(request), timezone.now())
    except Unfit as unfit:
        return refused(f"text: {unfit}")
    messages.info(request, "Written." if done else "It says so already.")
    return redirect("study", slug)
