"""The data of a study: seven queries, however many kernels and tests there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models.functions import Length
from django.urls import reverse

from tracker.documents.blocks import Document, DocumentLink
from tracker.documents.compare_files import Beside
from tracker.documents.study.compose import compose
from tracker.documents.study.facts import StudyFacts
from tracker.documents.study.system import MONITORS, System, system
from tracker.domain.kernel_comparison import ComparisonLine
from tracker.domain.tool_output.diff import diff
from tracker.domain.tool_output.kinds import TEXT, read
from tracker.domain.tool_output.listing import ToolListing
from tracker.models import Kernel, MeasuredRole, Measurement, Study, StudyKind, ToolOutput
from tracker.pages.kernels import queries as comparison
from tracker.services.revisions import texts

MOST_KERNELS = 12
MOST_FILES = 5000  # files to choose from
MOST_GROUPS = 20  # whose files are shown side by side
MOST_VMSTAT = 5  # vmstat listings per kernel for the system columns
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
    return compose(facts(study.title, [column.kernel for column in columns], labels, study.kind, prose))


def ad_hoc(kernels: Sequence[Kernel], lines: Sequence[ComparisonLine] | None = None) -> Document:
    """Return the document of any kernels side by side. `lines`: their comparison, if it is at hand."""
    labels = [kernel.label for kernel in kernels]
    return compose(facts(" vs. ".join(labels), kernels, labels, kind_of(kernels), {}, lines))


def kind_of(kernels: Sequence[Kernel]) -> StudyKind:
    """Return the likely kind of comparison: VARIANTS for variants of one kernel, otherwise VERSIONS."""
    is_one = len(kernels) > 1 and len({kernel.name for kernel in kernels}) == 1
    return StudyKind.VARIANTS if is_one else StudyKind.VERSIONS


def facts(
    title: str,
    kernels: Sequence[Kernel],
    labels: Sequence[str],
    kind: str,
    prose: Mapping[str, str],
    lines: Sequence[ComparisonLine] | None = None,
) -> StudyFacts:
    """Return all data of a study."""
    groups, vmstat, left_out = _files(kernels)
    listings = _read([row for group in groups for row in group] + vmstat)
    return StudyFacts(
        title=title,
        labels=tuple(labels),
        kernels=tuple(kernel.label for kernel in kernels),
        has_wins=kind == StudyKind.VARIANTS,
        lines=comparison.compare(kernels) if lines is None else lines,
        systems=_systems(kernels, vmstat, listings),
        beside=_beside(groups, dict(zip((kernel.pk for kernel in kernels), labels, strict=True)), listings),
        prose=prose,
        files_left_out=left_out,
    )


def _files(kernels: Sequence[Kernel]) -> tuple[list[list[ToolOutput]], list[ToolOutput], int]:
    """Return the files to show side by side, one list per kind, machine and scenario in the order of the kernels;
    those of vmstat, a few per kernel; and the number of files left out. All without their texts.
    """
    rows = ToolOutput.objects.filter(kernel__in=kernels).exclude(kind=TEXT).defer("text").order_by("pk")
    order = {kernel.pk: number for number, kernel in enumerate(kernels)}
    groups: dict[tuple[object, ...], dict[int, ToolOutput]] = {}
    vmstat: dict[int, list[ToolOutput]] = {}
    for row in rows.select_related("kernel", "machine", "scenario")[:MOST_FILES]:
        assert row.kernel
        groups.setdefault((row.kind, row.machine, row.scenario), {}).setdefault(row.kernel.pk, row)
        if row.kind == VMSTAT:
            vmstat.setdefault(row.kernel.pk, []).append(row)
    several = [
        [group[pk] for pk in sorted(group, key=lambda pk: order[pk])] for group in groups.values() if len(group) > 1
    ]
    shown = several[:MOST_GROUPS]
    left_out = sum(map(len, several[MOST_GROUPS:]))
    return shown, [row for files in vmstat.values() for row in files[:MOST_VMSTAT]], left_out


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
    return [
        system(
            monitors.get(kernel.pk, {}),
            [listings[row.pk] for row in vmstat if row.kernel == kernel and row.pk in listings],
        )
        for kernel in kernels
    ]


def _beside(
    groups: Sequence[Sequence[ToolOutput]], labels: Mapping[int, str], listings: Mapping[int, ToolListing]
) -> list[Beside]:
    found = []
    for group in groups:
        known = [row for row in group if row.pk in listings]
        if len(known) < 2:
            continue
        names = [labels[row.kernel.pk] if row.kernel else "" for row in known]
        files = tuple(
            DocumentLink(f"{name}: {row.name}", reverse("evidence", args=[row.pk]))
            for name, row in zip(names, known, strict=True)
        )
        first = known[0]
        measured_on = ", ".join(str(each) for each in (first.scenario, first.machine) if each)
        differences = diff([listings[row.pk] for row in known])
        found.append(Beside(first.kind, measured_on, tuple(names), files, differences))
    return found
