"""`/compare/`: any kernels side by side; `/studies/`: those that have a name."""

from __future__ import annotations

import re

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.asked import person, refused, told
from tracker.comparison import queries as comparison
from tracker.document import markdown, text
from tracker.document.blocks import Document
from tracker.models import Kernel, Study, StudyKernel, StudyKind
from tracker.people.roles import CHANGE_REPORTS
from tracker.people.views import signed_in
from tracker.studies import queries
from tracker.studies.compose import PLACES
from tracker.writings import Unfit, versions, write

_FORMS = {"txt": (text.render, "text/plain"), "md": (markdown.render, "text/markdown")}
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,49}\Z")


def compare(request: HttpRequest, form: str = "") -> HttpResponse:
    """The kernels of `of`, in the order asked for; without any, all that can be chosen."""
    handles = [handle for handle in request.GET.getlist("of") if handle]
    try:
        chosen = _chosen(handles)
    except Unfit as unfit:
        return refused(f"of: {unfit}")
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


def _chosen(handles: list[str]) -> list[Kernel]:
    if len(handles) > queries.MOST_KERNELS:
        raise Unfit(f"expected at most {queries.MOST_KERNELS} kernels, found {len(handles)}")
    if any("\0" in handle for handle in handles):
        raise Unfit("no kernel has such a name")
    found = comparison.named(handles) if handles else []
    if unknown := [handle for handle, kernel in zip(handles, found, strict=True) if kernel is None]:
        raise Unfit(f"no kernel {unknown[0][:80]!r} was measured")
    return list(dict.fromkeys(kernel for kernel in found if kernel))


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
@signed_in
def keep(request: HttpRequest) -> HttpResponse:
    """Give a comparison a name."""
    if not request.user.has_perm(CHANGE_REPORTS):
        return refused("only triagers make studies", 403)
    slug, title = told(request.POST, "slug", 60), " ".join(told(request.POST, "title", 300).split())
    kind = told(request.POST, "kind", 20)
    if not _SLUG.match(slug):
        return refused(f"slug: expected small letters, digits and hyphens; found {slug!r}")
    if not title or kind not in StudyKind.values:
        return refused("title: expected a title; found none" if not title else f"kind: found {kind!r}")
    try:
        chosen = _chosen(request.POST.getlist("of"))
    except Unfit as unfit:
        return refused(f"of: {unfit}")
    if len(chosen) < 2:
        return refused("of: expected two kernels at least")
    if Study.objects.filter(slug=slug).exists():
        return refused(f"slug: there is a study {slug} already")
    made = Study.objects.create(slug=slug, title=title, kind=kind, made_at=timezone.now())
    rows = [StudyKernel(study=made, position=number, kernel=kernel) for number, kernel in enumerate(chosen, 1)]
    StudyKernel.objects.bulk_create(rows)
    return redirect("study", slug)


@require_POST
@signed_in
def edit(request: HttpRequest) -> HttpResponse:
    """Write one of the texts of a study."""
    slug, name = told(request.POST, "slug", 60), told(request.POST, "name", 30)
    if not request.user.has_perm(CHANGE_REPORTS):
        return refused("only triagers write into studies", 403)
    if name not in PLACES:
        return refused(f"name: expected one of {', '.join(PLACES)}; found {name!r}")
    _study(slug)
    try:
        done = write(queries.place(slug), name, request.POST.get("text", ""), person(request), timezone.now())
    except Unfit as unfit:
        return refused(f"text: {unfit}")
    messages.info(request, "Written." if done else "It says so already.")
    return redirect("study", slug)
