"""What is known of the kernels of a study: seven queries, however many kernels and tests there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracker.comparison import queries as comparison
from tracker.comparison.lines import Line
from tracker.document.blocks import Document
from tracker.evidence.diff import diff
from tracker.evidence.kinds import TEXT, read
from tracker.evidence.listing import Listing
from tracker.evidence.side_by_side import Beside
from tracker.models import Evidence, Kernel, MeasuredRole, Measurement, Study, StudyKind
from tracker.studies.compose import compose
from tracker.studies.facts import StudyFacts
from tracker.studies.system import MONITORS, System, system
from tracker.writings import texts

MOST_KERNELS = 12
MOST_FILES = 60  # of evidence that are read for a page
MOST_LETTERS = 16 << 20  # of them together


def place(slug: str) -> str:
    """Where the prose of a study stands among what people wrote."""
    return f"study {slug}"


def document(study: Study) -> Document:
    """A study that has a name."""
    columns = list(study.columns.select_related("kernel"))
    prose = {name: row.text for name, row in texts(place(study.slug)).items()}
    labels = [str(column) for column in columns]
    return compose(facts(study.title, [column.kernel for column in columns], labels, study.kind, prose))


def ad_hoc(kernels: Sequence[Kernel]) -> Document:
    """Any kernels side by side."""
    labels = [str(kernel) for kernel in kernels]
    variants = len(kernels) > 1 and len({kernel.name for kernel in kernels}) == 1
    kind = StudyKind.VARIANTS if variants else StudyKind.VERSIONS
    return compose(facts(" beside ".join(labels), kernels, labels, kind, {}))


def facts(
    title: str, kernels: Sequence[Kernel], labels: Sequence[str], kind: str, prose: Mapping[str, str]
) -> StudyFacts:
    """All that a study tells."""
    files = _files(kernels)
    lines: list[Line] = comparison.compare(kernels)
    return StudyFacts(
        title=title,
        labels=tuple(labels),
        kernels=tuple(map(str, kernels)),
        has_wins=kind == StudyKind.VARIANTS,
        lines=lines,
        systems=_systems(kernels, files),
        beside=_beside(kernels, labels, files),
        prose=prose,
    )


def _files(kernels: Sequence[Kernel]) -> list[tuple[Evidence, Listing]]:
    """What tools printed, as far as it can be read."""
    rows = Evidence.objects.filter(kernel__in=kernels).exclude(kind=TEXT).order_by("pk")
    found: list[tuple[Evidence, Listing]] = []
    letters = 0
    for row in rows.select_related("kernel", "machine", "scenario")[:MOST_FILES]:
        letters += len(row.text)
        if letters > MOST_LETTERS:
            break
        if listing := read(row.kind, row.text):
            found.append((row, listing))
    return found


def _systems(kernels: Sequence[Kernel], files: Sequence[tuple[Evidence, Listing]]) -> list[System]:
    rows = Measurement.objects.filter(kernel__in=kernels, role=MeasuredRole.MONITOR, metric__name__in=MONITORS)
    monitors: dict[int, dict[str, list[float]]] = {}
    for kernel, metric, mean in rows.values_list("kernel", "metric__name", "mean"):
        monitors.setdefault(kernel, {}).setdefault(metric, []).append(mean)
    return [
        system(
            monitors.get(kernel.pk, {}),
            [listing for row, listing in files if row.kernel == kernel and row.kind == "vmstat"],
        )
        for kernel in kernels
    ]


def _beside(
    kernels: Sequence[Kernel], labels: Sequence[str], files: Sequence[tuple[Evidence, Listing]]
) -> list[Beside]:
    """The first kernel's files beside those that were taken in the same place on each other kernel."""
    found = []
    for kernel, label in zip(kernels[1:], labels[1:], strict=True):
        taken: set[int] = set()
        for old, before in (pair for pair in files if pair[0].kernel == kernels[0]):
            fits = (pair for pair in files if pair[0].kernel == kernel and pair[0].pk not in taken)
            new = next((pair for pair in fits if _where(pair[0]) == _where(old)), None)
            if new:
                taken.add(new[0].pk)
                where = " ".join(str(each) for each in (old.scenario, old.machine) if each)
                found.append(Beside(old.kind, where, labels[0], label, diff(before, new[1])))
    return found


def _where(row: Evidence) -> tuple[object, ...]:
    return (row.kind, row.machine, row.scenario)
