"""The data of the index: basket, kernels and measurements; and the reports that explain a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Case, Count, Max, Q, When

from tracker.domain import versions
from tracker.domain.events import Verdict
from tracker.domain.kernel_comparison import Cell, pooled
from tracker.domain.performance_index.basket import Benchmark, at, read_params
from tracker.domain.performance_index.index_math import BenchmarkMean, IndexPoint, series
from tracker.domain.statistics.samples import SampleSummary
from tracker.models import BasketEntry, Kernel, MeasuredRole, Measurement, Metric, Report
from tracker.pages.kernels import queries as comparison
from tracker.services.reports.report_summary import clipped

BASKET = "default"
MOST_KERNELS = 80
MOST_BY_DEFAULT = 150  # benchmarks, while there is no basket
MOST_REPORTS = 40
KEEP = 3600  # seconds; a new measurement or a changed basket counts at once


def entries() -> list[Benchmark]:
    """Return the basket; while there is none, every headline metric of a release, with equal weights."""
    rows = list(BasketEntry.objects.filter(basket=BASKET).select_related("metric").order_by("pk"))
    if rows:
        return [entry_of(row) for row in rows]
    headlines = Measurement.objects.filter(role=MeasuredRole.HEADLINE, kernel__in=kernels()).values("metric")
    return [
        Benchmark(each.name, (), each.direction)
        for each in Metric.objects.filter(pk__in=headlines).order_by("name")[:MOST_BY_DEFAULT]
    ]


def entry_of(row: BasketEntry) -> Benchmark:
    return Benchmark(row.metric.name, read_params(row.params), row.metric.direction, row.weight, row.since, row.until)


def kernels() -> list[Kernel]:
    """Return the releases in order, and the release candidates after the last one."""
    plain = {kernel: parsed for kernel in Kernel.objects.filter(variant="") if (parsed := versions.parse(kernel.name))}
    last = max((parsed for parsed in plain.values() if parsed.is_release), default=None)
    kept = [
        kernel
        for kernel, parsed in plain.items()
        if parsed.is_release or (parsed.is_candidate and (last is None or parsed > last))
    ]
    return sorted(kept, key=comparison.order)[-MOST_KERNELS:]


def points(basket: Sequence[Benchmark]) -> list[IndexPoint]:
    """Return the index of every kernel, cached until there are new measurements or another basket."""
    compared = kernels()
    state = Measurement.objects.aggregate(newest=Max("pk"), number=Count("pk"))
    key = f"index:{hash((tuple(basket), tuple(map(str, compared)), state['newest'], state['number']))}"
    found: list[IndexPoint] | None = cache.get(key)
    if found is None:
        found = series(_measured(basket, compared))
        cache.set(key, found, KEEP)
    return found


def _measured(basket: Sequence[Benchmark], compared: Sequence[Kernel]) -> list[BenchmarkMean]:
    readings: dict[int, dict[str, dict[str, list[Cell]]]] = {}
    by_metric: dict[str, list[Benchmark]] = {}
    for entry in {entry.key: entry for entry in basket}.values():
        by_metric.setdefault(entry.metric, []).append(entry)
    rows = Measurement.objects.filter(kernel__in=compared, metric__name__in=by_metric).order_by(
        *comparison.OLDEST_FIRST
    )
    columns = ("kernel", "metric__name", "scenario", "scenario__params", "machine", "mean", "stddev", "runs", "samples")
    for kernel, metric, scenario, params, machine, mean, stddev, runs, samples in rows.values_list(*columns).iterator():
        for entry in by_metric[metric]:
            if entry.takes(metric, params):
                cells_by_test = readings.setdefault(kernel, {}).setdefault(entry.key, {})
                cell = Cell(SampleSummary(mean, stddev, runs), tuple(samples))
                cells_by_test.setdefault(f"{scenario}/{machine}", []).append(cell)
    return [
        BenchmarkMean(
            kernel.name,
            at(basket, kernel.name),
            {
                key: {test: pooled(cells) for test, cells in cells_by_test.items()}
                for key, cells_by_test in readings.get(kernel.pk, {}).items()
            },
        )
        for kernel in compared
    ]


@dataclass(frozen=True, slots=True)
class Explained:
    """A report that may explain a benchmark's part: merged in the cycle, of the same metric or the same suite. If
    fixed within the cycle (`fixed_in_cycle`), it does not explain the release.
    """

    report: Report
    same_metric: bool
    fixed_in_cycle: bool


def explaining(version: str, basket: Sequence[Benchmark]) -> list[Explained]:
    """Return the reports merged in the cycle of a kernel that concern the basket, those of its own metrics first."""
    parsed = versions.parse(version)
    if parsed is None:
        return []
    metrics = {clipped(entry.metric) for entry in at(basket, version)}
    suites = {metric.partition(".")[0] for metric in metrics}
    rows = Report.objects.filter(Q(metric__in=metrics) | Q(suite__in=suites), merged_release=parsed.cycle)
    rows = rows.exclude(verdict=Verdict.UNKNOWN)
    rows = rows.annotate(same=Case(When(metric__in=metrics, then=1), default=0)).select_related("culprit")
    found = rows.order_by("-same", "metric", "-weight", "pk")[:MOST_REPORTS]
    return [Explained(row, row.metric in metrics, versions.cycle_of(row.fix_landing) == parsed.cycle) for row in found]
