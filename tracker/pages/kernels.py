"""`/kernel/v5.6/`: a kernel's measurements, results, profiles and counters; kernels side by side.

The known kernels, the measurements of one, and the curves of tests take one query each; `compare`, which other pages
use, takes two.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import F, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from tracker.domain import versions
from tracker.domain.kernel_comparison import Box, Cell, ComparisonLine, Test, lines, pooled
from tracker.domain.statistics import SampleSummary
from tracker.domain.text import scenario_key
from tracker.models import Curve, Kernel, MeasuredRole, Measurement, Suite

MOST_KERNELS = 500  # to choose from
MOST = 200_000  # measurements per comparison: years of a lab
# Where several results cover the same test, the newest is the one measured last.
OLDEST_FIRST = (F("result__created_at").asc(nulls_first=True), "pk")
_COLUMNS = (
    *("kernel_id", "scenario_id", "machine_id", "metric_id", "mean", "stddev", "runs", "samples"),
    *("scenario__suite", "scenario__params", "metric__name", "metric__unit", "metric__direction"),
    *("machine__name", "machine__codename", "machine__cpu_model", "machine__cpus", "machine__memory_bytes"),
    "machine__family",
)


def kernels() -> list[Kernel]:
    """Return the kernels measured last: commits, then versions in release order, so that the oldest of those chosen is
    the baseline for the others.
    """
    return sorted(Kernel.objects.order_by("-pk")[:MOST_KERNELS], key=order)


def order(kernel: Kernel) -> tuple[Any, ...]:
    """Return a sort key: release order."""
    version = versions.parse(kernel.name)
    return (version is not None, version or versions.Version(0, 0, 0, 0, 0), kernel.measured_at, kernel.variant)


def named(handles: Sequence[str]) -> list[Kernel | None]:
    """Return the kernels of these handles ("v5.6", "v5.6/2M"), in order; None where there is no such kernel."""
    pairs = [handle.replace("\0", "\ufffd").partition("/")[::2] for handle in handles]
    condition = Q(pk__in=[])
    for name, variant in pairs:
        condition |= Q(name=name, variant=variant)
    by_pair = {(kernel.name, kernel.variant): kernel for kernel in Kernel.objects.filter(condition)}
    return [by_pair.get((name, variant)) for name, variant in pairs]


def compare(compared: Sequence[Kernel], metrics: Collection[str] | None = None) -> list[ComparisonLine]:
    """Return the results of these kernels, test by test: by suite position, then as received. Two queries.

    `metrics`: those to compare; None for the headlines.
    """
    chosen = Q(role=MeasuredRole.HEADLINE) if metrics is None else Q(metric__name__in=metrics)
    rows = Measurement.objects.filter(chosen, kernel__in=compared).order_by("pk").values_list(*_COLUMNS)
    tests: dict[tuple[int, int, int], Test] = {}
    cells: dict[tuple[int, int, int], dict[int, list[Cell]]] = {}
    for kernel, scenario, machine, metric, mean, stddev, runs, samples, *test in rows[:MOST].iterator(chunk_size=2000):
        key = (scenario, machine, metric)
        if key not in tests:
            suite, params, name, unit, direction, *box = test
            tests[key] = Test(suite, tuple(params.items()), Box(*box), name, unit, direction)
            cells[key] = {}
        cells[key].setdefault(kernel, []).append(Cell(SampleSummary(mean, stddev, runs), tuple(samples)))
    positions = dict(Suite.objects.values_list("name", "position"))
    ordered = sorted(tests, key=lambda key: positions.get(tests[key].suite, 1000))
    return lines(
        [
            (tests[key], [pooled(cells[key][column.pk]) if column.pk in cells[key] else None for column in compared])
            for key in ordered
        ]
    )


def curves_of(tests: Collection[Test]) -> dict[Test, Curve]:
    """Return the curves of tests, of those that have one, in one query."""
    places = {(test.metric, scenario_key(test.suite, dict(test.params)), test.box.name): test for test in tests}
    metrics, scenarios, machines = ({place[part] for place in places} for part in range(3))
    rows = Curve.objects.filter(metric__name__in=metrics, scenario__key__in=scenarios, machine__name__in=machines)
    related = rows.select_related("metric", "scenario", "machine")
    curves = {(row.metric.name, row.scenario.key, row.machine.name): row for row in related}
    return {test: curves[place] for place, test in places.items() if place in curves}


def neighbours(kernel: Kernel) -> list[Kernel]:
    """Return likely kernels to compare with: its other variants, else the neighbouring versions."""
    others = [other for other in kernels() if other.name == kernel.name and other != kernel]
    if others:
        return others
    ordered = [other for other in kernels() if not other.variant or other == kernel]
    if kernel not in ordered:
        return []  # one of the oldest: only the newest are offered
    at = ordered.index(kernel)
    return [*ordered[max(0, at - 2) : at], *ordered[at + 1 : at + 3]]


# --- Views ---

MOST_ROWS, MOST_FILES = 500, 200


def kernel(request: HttpRequest, handle: str) -> HttpResponse:
    """Show every measurement, headlines first."""
    (kernel,) = named([handle]) if "\0" not in handle else (None,)
    if kernel is None:
        raise Http404(f"no kernel {handle[:100]} was measured")
    related = Measurement.objects.filter(kernel=kernel).select_related("metric", "scenario", "machine", "result")
    rows = list(related.order_by("role", "scenario__suite", "pk")[: MOST_ROWS + 1])  # headline, kpi, monitor
    context = {
        "kernel": kernel,
        "rows": rows[:MOST_ROWS],
        "is_cut": len(rows) > MOST_ROWS,
        "results": kernel.results.order_by("-pk")[:MOST_FILES],
        "files": kernel.tool_outputs.select_related("machine", "scenario").defer("text").order_by("pk")[:MOST_FILES],
        "neighbours": neighbours(kernel),
    }
    return render(request, "kernel.html", context)
