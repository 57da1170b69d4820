"""`/compare/`: any kernels side by side; `/studies/`: comparisons saved under a name.

The first kernel is the baseline for the others. A study of variants of one kernel shows how often each wins, another
one how versions develop. Its data takes seven queries, however many kernels and tests there are. Files of tool output
are shown side by side if they are of one kind, machine and scenario; those beyond the limits are counted. The prose
of a saved study is edited in place and keeps its versions (tracker/pages/prose.py).
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.db import transaction
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.documents.blocks import Document, DocumentLink
from tracker.documents.csv_tables import COMPARISON, measured
from tracker.documents.study import MONITORS, SECTIONS, Beside, StudyFacts, System, compose, system
from tracker.domain.events import InvalidInput
from tracker.domain.kernel_comparison import ComparisonLine
from tracker.domain.tool_output import TEXT, TOP, ToolListing, by_share, diff, read
from tracker.models import Kernel, MeasuredRole, Measurement, Study, StudyKernel, StudyKind, ToolOutput
from tracker.pages import lab
from tracker.pages.http import cleaned, csv_response, permission_required, row_or_404
from tracker.pages.index import counted_in_index
from tracker.pages.lab import kernels_named
from tracker.pages.prose import editing, in_form, save_text, texts
from tracker.services.accounts import CHANGE_REPORTS

MOST_KERNELS = 12
MOST_FILES = 5000  # files to choose from
MOST_GROUPS = 20  # whose files are shown side by side
MOST_ALONE = 40  # files that only have a link
MOST_VMSTAT = 5  # vmstat listings per kernel for the system columns
MOST_FUNCTIONS = 100  # of several profiles together
MOST_CHARACTERS = 6 << 20  # characters read for one page
VMSTAT = "vmstat"


def document_key(slug: str) -> str:
    """Return the `place` of a study's prose in `TextRevision`."""
    return f"study {slug}"


def document(study: Study) -> Document:
    """Return the document of a saved study."""
    columns = list(study.columns.select_related("kernel"))
    prose = {name: row.text for name, row in texts(document_key(study.slug)).items()}
    labels = [str(column) for column in columns]
    kernels = [column.kernel for column in columns]
    return compose(_facts(study.title, kernels, labels, study.kind, prose, lab.compare(kernels)))


def ad_hoc(kernels: Sequence[Kernel], lines: Sequence[ComparisonLine]) -> Document:
    """Return the document of any kernels side by side. `lines`: their comparison."""
    labels = [kernel.label for kernel in kernels]
    return compose(_facts(" vs. ".join(labels), kernels, labels, kind_of(kernels), {}, lines))


def kind_of(kernels: Sequence[Kernel]) -> StudyKind:
    """Return the likely kind of comparison: VARIANTS for variants of one kernel, otherwise VERSIONS."""
    is_one = len(kernels) > 1 and len({kernel.name for kernel in kernels}) == 1
    return StudyKind.VARIANTS if is_one else StudyKind.VERSIONS


def _facts(
    title: str,
    kernels: Sequence[Kernel],
    labels: Sequence[str],
    kind: str,
    prose: Mapping[str, str],
    lines: Sequence[ComparisonLine],
) -> StudyFacts:
    """Return all data of a study."""
    labelled = dict(zip((kernel.pk for kernel in kernels), labels, strict=True))
    groups, vmstat, left_out, alone = _files(kernels)
    listings = _read([row for group in groups for row in group] + vmstat)
    alone += [row for group in groups for row in group if row.pk not in listings]
    return StudyFacts(
        title=title,
        labels=tuple(labels),
        kernels=tuple(kernel.label for kernel in kernels),
        has_wins=kind == StudyKind.VARIANTS,
        lines=lines,
        systems=_systems(kernels, vmstat, listings),
        beside=_beside(groups, labelled, listings),
        prose=prose,
        files_left_out=left_out,
        files=[_link(row, labelled) for row in alone],
    )


def _files(kernels: Sequence[Kernel]) -> tuple[list[list[ToolOutput]], list[ToolOutput], int, list[ToolOutput]]:
    """Return the files to show side by side, one list per kind, machine and scenario in the order of the kernels;
    those of vmstat, a few per kernel; the number of files left out; and the first that stand alone. All without texts.
    """
    rows = ToolOutput.objects.filter(kernel__in=kernels).defer("text").order_by("pk")
    order = {kernel.pk: number for number, kernel in enumerate(kernels)}
    groups: dict[tuple[object, ...], dict[int, ToolOutput]] = {}
    vmstat: dict[int, list[ToolOutput]] = {}
    for row in rows.select_related("kernel", "machine", "scenario")[:MOST_FILES]:
        assert row.kernel
        name = row.name if row.kind == TEXT else ""  # what can't be compared stands alone: /proc/stat, lockstat
        groups.setdefault((row.kind, name, row.machine, row.scenario), {}).setdefault(row.kernel.pk, row)
        if row.kind == VMSTAT:
            vmstat.setdefault(row.kernel.pk, []).append(row)
    in_order = [[group[pk] for pk in sorted(group, key=lambda pk: order[pk])] for group in groups.values()]
    several = [group for group in in_order if len(group) > 1 and group[0].kind != TEXT]
    alone = [row for group in in_order if len(group) == 1 or group[0].kind == TEXT for row in group]
    shown = several[:MOST_GROUPS]
    left_out = sum(map(len, several[MOST_GROUPS:])) + len(alone[MOST_ALONE:])
    return shown, [row for files in vmstat.values() for row in files[:MOST_VMSTAT]], left_out, alone[:MOST_ALONE]


def _read(rows: Sequence[ToolOutput]) -> dict[int, ToolListing]:
    """Return the contents of these files by key, up to MOST_CHARACTERS in all."""
    kinds = {row.pk: row.kind for row in rows}
    sizes = ToolOutput.objects.filter(pk__in=kinds).order_by("pk").values_list("pk", Length("text"))
    remaining, keys = MOST_CHARACTERS, []
    for pk, size in sizes:
        remaining -= size
        if remaining < 0:
            break
        keys.append(pk)
    texts_of = ToolOutput.objects.filter(pk__in=keys).values_list("pk", "text")
    return {pk: listing for pk, text in texts_of.iterator(chunk_size=5) if (listing := read(kinds[pk], text))}


def _systems(
    kernels: Sequence[Kernel], vmstat: Sequence[ToolOutput], listings: Mapping[int, ToolListing]
) -> list[System]:
    rows = Measurement.objects.filter(kernel__in=kernels, role=MeasuredRole.MONITOR, metric__name__in=MONITORS)
    monitors: dict[int, dict[str, list[float]]] = {}
    for kernel, metric, mean in rows.values_list("kernel", "metric__name", "mean"):
        monitors.setdefault(kernel, {}).setdefault(metric, []).append(mean)
    own = {kernel: [row for row in vmstat if row.kernel == kernel and row.pk in listings] for kernel in kernels}
    return [
        system(
            monitors.get(kernel.pk, {}),
            [listings[row.pk] for row in rows],
            reverse("tool-output", args=[rows[0].pk]) if rows else "",
        )
        for kernel, rows in own.items()
    ]


def _beside(
    groups: Sequence[Sequence[ToolOutput]], labels: Mapping[int, str], listings: Mapping[int, ToolListing]
) -> list[Beside]:
    comparisons = []
    for group in groups:
        rows = [row for row in group if row.pk in listings]
        if len(rows) < 2:
            continue
        names = [labels[row.kernel.pk] if row.kernel else "" for row in rows]
        files = tuple(_link(row, labels) for row in rows)
        first = rows[0]
        measured_on = ", ".join(str(part) for part in (first.scenario, first.machine) if part)
        own = [listings[row.pk] for row in rows]
        differences = diff(own, MOST_FUNCTIONS if own[0].is_share else TOP)
        profiles = [by_share(listing)[:TOP] for listing in own] if differences.is_share else ()
        comparisons.append(Beside(first.kind, measured_on, tuple(names), files, differences, tuple(profiles)))
    return comparisons


def _link(row: ToolOutput, labels: Mapping[int, str]) -> DocumentLink:
    name = labels[row.kernel.pk] if row.kernel else ""
    return DocumentLink(f"{name}: {row.name}", reverse("tool-output", args=[row.pk]))


# --- Creating a study ---

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,49}\Z")


def choose(handles: Sequence[str]) -> list[Kernel]:
    """Return the kernels of these handles, each once, in order. Raises InvalidInput for an unknown one."""
    if len(handles) > MOST_KERNELS:
        raise InvalidInput(f"of: expected at most {MOST_KERNELS} kernels, found {len(handles)}")
    if any("\0" in handle for handle in handles):
        raise InvalidInput("of: a kernel name must not contain NUL")
    kernels = kernels_named(handles) if handles else []
    if unknown := [handle for handle, kernel in zip(handles, kernels, strict=True) if kernel is None]:
        raise InvalidInput(f"of: no kernel {unknown[0][:80]!r} was measured")
    return list(dict.fromkeys(kernel for kernel in kernels if kernel))


@transaction.atomic
def make(slug: str, title: str, kind: str, handles: Sequence[str], now: datetime) -> Study:
    """Create a study of these kernels; `kind` "": guessed from them. Raises InvalidInput, which says what is wrong."""
    if not _SLUG.match(slug):
        raise InvalidInput(f"slug: expected lower-case letters, digits and hyphens; found {slug[:60]!r}")
    if not title:
        raise InvalidInput("title: expected a title; found none")
    if kind and kind not in StudyKind.values:
        raise InvalidInput(f"kind: expected one of {', '.join(StudyKind.values)}; found {kind[:20]!r}")
    chosen = choose(handles)
    if len(chosen) < 2:
        raise InvalidInput("of: expected at least two kernels")
    if Study.objects.filter(slug=slug).exists():
        raise InvalidInput(f"slug: study {slug} already exists")
    study = Study.objects.create(slug=slug, title=title, kind=kind or kind_of(chosen), made_at=now)
    StudyKernel.objects.bulk_create(
        StudyKernel(study=study, position=number, kernel=kernel) for number, kernel in enumerate(chosen, 1)
    )
    return study


# --- Views ---


def compare(request: HttpRequest, form: str = "") -> HttpResponseBase:
    """Compare the kernels of `of`, in the order given; without any, show those that can be chosen; 400 says on the
    page which of them was not measured.
    """
    handles, error = [handle for handle in request.GET.getlist("of") if handle], ""
    try:
        chosen = choose(handles)
    except InvalidInput as refusal:
        if form:
            raise
        handles, chosen, error = [], [], str(refusal)
    if form and not chosen:
        raise InvalidInput("of: expected kernels, found none")
    lines = lab.compare(chosen) if chosen else []
    if form == "csv":
        return csv_response(COMPARISON, measured(lines, [kernel.label for kernel in chosen]))
    if form:
        return in_form(ad_hoc(chosen, lines), form)
    kernels = lab.kernels()
    context = {
        "choices": [[kernel for kernel in kernels if kernel.is_commit == commits] for commits in (False, True)],
        "handles": handles,
        "document": ad_hoc(chosen, lines) if chosen else None,
        "in_index": counted_in_index(chosen, lines),
        "query": request.GET.urlencode(),
        # The query of the same comparison with another kernel as the baseline
        "others": [
            (handle, urlencode([("of", handle), *(("of", other) for other in handles if other != handle)]))
            for handle in handles[1:]
        ],
        "may_write": request.user.has_perm(CHANGE_REPORTS),
        "error": error,
    }
    return render(request, "compare.html", context, status=400 if error else 200)


def studies(request: HttpRequest) -> HttpResponse:
    """List the studies, newest first."""
    return render(request, "studies.html", {"studies": Study.objects.prefetch_related("columns__kernel")[:200]})


def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a study; `edit` names the text to edit."""
    study, edit = _study(slug), editing(request, document_key(slug), SECTIONS)
    return render(request, "study.html", {"study": study, "document": document(study), "edit": edit})


def as_form(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    """Return a study as text, Markdown, JSON or CSV."""
    study = _study(slug)
    if form == "csv":
        columns = list(study.columns.select_related("kernel"))
        lines = lab.compare([column.kernel for column in columns])
        return csv_response(COMPARISON, measured(lines, [str(column) for column in columns]))
    return in_form(document(study), form)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can create studies")
def save_study(request: HttpRequest) -> HttpResponse:
    """Save a comparison as a study."""
    slug, title = cleaned(request.POST, "slug", 60), " ".join(cleaned(request.POST, "title", 300).split())
    make(slug, title, "", request.POST.getlist("of"), timezone.now())
    return redirect("study", slug)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can edit studies")
def edit(request: HttpRequest) -> HttpResponse:
    """Save one of the texts of a study."""
    study = _study(cleaned(request.POST, "slug", 60))
    save_text(request, document_key(study.slug), SECTIONS)
    return redirect("study", study.slug)


def _study(slug: str) -> Study:
    return row_or_404(Study.objects.filter(slug=slug), f"there is no study {slug[:80]}")
