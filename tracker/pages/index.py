"""`/index/`: the performance index over releases, its basket, and what is behind each point.

The basket says which benchmarks count, by which weight, and from which release to which; while there is none, every
headline metric of a release counts alike. The points are computed by tracker/domain/performance_index.py and cached
until there are new measurements or another basket.

Each point has a page with its parts; the tests behind it, how each moved since the kernel before, and its curve; the
reports that may explain it; and comments, which their authors and triagers may change. The basket is changed as a
whole: every row is validated, the change is logged in the basket's history, and nothing is changed if somebody else
was faster.
"""

import math
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, TypeVar

from django.contrib import messages
from django.db import transaction
from django.db.models import Case, Count, Max, Q, When
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.charts import index_chart
from tracker.documents.csv_tables import CONTRIBUTIONS, INDEX
from tracker.domain import versions
from tracker.domain.events import InvalidInput, Verdict
from tracker.domain.kernel_comparison import Cell, Change, ChangeVerdict, ComparisonLine, pooled
from tracker.domain.performance_index import Benchmark, BenchmarkMean, IndexPoint, at, params_text, read_params, series
from tracker.domain.statistics import SampleSummary
from tracker.domain.text import counted
from tracker.models import BasketEntry, Kernel, MeasuredRole, Measurement, Metric, Report, Study, Suite, TextRevision
from tracker.pages import lab, prose
from tracker.pages.http import cleaned, csv_response, error_response, is_key, kept, sign_in_required, username
from tracker.pages.prose import comments, write
from tracker.pages.prose import versions as versions_of
from tracker.services.accounts import CHANGE_BASKET, CHANGE_REPORTS
from tracker.services.report_summary import clipped

# --- Points and their reports ---

BASKET = "default"
MOST_KERNELS = 80
MOST_BY_DEFAULT = 150  # benchmarks, while there is no basket
MOST_REPORTS = 40
KEEP = 3600  # seconds; a new measurement or a changed basket counts at once


def entries() -> list[Benchmark]:
    """Return the basket; while there is none, every headline metric of a release, with equal weights."""
    rows = list(BasketEntry.objects.filter(basket=BASKET).select_related("metric").order_by("pk"))
    if rows:
        return [
            Benchmark(row.metric.name, read_params(row.params), row.metric.direction, row.weight, row.since, row.until)
            for row in rows
        ]
    headlines = Measurement.objects.filter(role=MeasuredRole.HEADLINE, kernel__in=measured_releases()).values("metric")
    return [
        Benchmark(metric.name, (), metric.direction)
        for metric in Metric.objects.filter(pk__in=headlines).order_by("name")[:MOST_BY_DEFAULT]
    ]


def measured_releases() -> list[Kernel]:
    """Return the releases in order, and the release candidates after the last one."""
    plain = {kernel: parsed for kernel in Kernel.objects.filter(variant="") if (parsed := versions.parse(kernel.name))}
    last = max((parsed for parsed in plain.values() if parsed.is_release), default=None)
    kept = [
        kernel
        for kernel, parsed in plain.items()
        if parsed.is_release or (parsed.is_candidate and (last is None or parsed > last))
    ]
    return sorted(kept, key=lab.release_order)[-MOST_KERNELS:]


def index_points(basket: Sequence[Benchmark]) -> list[IndexPoint]:
    """Return the index of every kernel, cached until there are new measurements or another basket."""
    return _computed("index", basket, series)


def points_by_suite(basket: Sequence[Benchmark]) -> dict[str, list[IndexPoint]]:
    """Return the index of every kernel by each suite of the basket alone, cached likewise."""

    def by_suite(kernels: Sequence[BenchmarkMean]) -> dict[str, list[IndexPoint]]:
        suites = sorted({suite_of(entry) for entry in basket})
        return {suite: series([_of_suite(kernel, suite) for kernel in kernels]) for suite in suites}

    return _computed("suites", basket, by_suite)


def suite_of(entry: Benchmark) -> str:
    return entry.metric.partition(".")[0]


def _of_suite(kernel: BenchmarkMean, suite: str) -> BenchmarkMean:
    """Return a kernel with the benchmarks of one suite."""
    return replace(kernel, basket=tuple(entry for entry in kernel.basket if suite_of(entry) == suite))


Result = TypeVar("Result")


def _computed(name: str, basket: Sequence[Benchmark], of: Callable[[Sequence[BenchmarkMean]], Result]) -> Result:
    """Return what follows from all measurements of a basket, from the cache if nothing is new."""
    compared = measured_releases()
    state = Measurement.objects.aggregate(newest=Max("pk"), number=Count("pk"))
    key = f"{name}:{hash((tuple(basket), tuple(map(str, compared)), state['newest'], state['number']))}"
    return kept(key, lambda: of(_measured(basket, compared)), KEEP)


def against(base: Kernel, kernel: Kernel) -> tuple[str, IndexPoint] | None:
    """Return the name of the basket, and the index of a kernel with another as 100; None if they share no test."""
    _, point = series(_measured(entries(), [base, kernel]))
    return (basket_name(), point) if point.contributions else None


def basket_name() -> str:
    """Return the name of the basket, beside which alone an index means anything."""
    chosen = BasketEntry.objects.filter(basket=BASKET).exists()
    return f"{BASKET} basket" if chosen else "basket of all headline metrics"


def meaning(points: Sequence[IndexPoint]) -> str:
    """Return in a sentence what the newest index says; "" if there are fewer than two."""
    measured = [point for point in points if point.value is not None]
    if len(measured) < 2:
        return ""
    first, newest = measured[0], measured[-1]
    assert newest.value is not None
    pct = newest.value - 100
    amount = "as well as" if abs(pct) < 0.05 else f"{abs(pct):.1f}% {'better' if pct > 0 else 'worse'} than"
    mean = "the weighted geometric mean of " if newest.matched > 1 else ""
    text = f"{newest.value:.1f} means that {newest.name} performs {amount} {first.name}"
    text += f" in {mean}{counted(newest.matched, 'benchmark')}"
    if newest.low is None or newest.high is None or newest.low == newest.high:
        return f"{text}; single runs don't tell how much of it is chance."
    chance = "; it includes 100, so this may be chance" if newest.low <= 100 <= newest.high else ""
    return f"{text} (95% CI of the index {newest.low:.1f} to {newest.high:.1f}{chance})."


def _measured(basket: Sequence[Benchmark], compared: Sequence[Kernel]) -> list[BenchmarkMean]:
    readings: dict[int, dict[str, dict[str, list[Cell]]]] = {}
    by_metric: dict[str, list[Benchmark]] = {}
    for entry in {entry.key: entry for entry in basket}.values():
        by_metric.setdefault(entry.metric, []).append(entry)
    rows = Measurement.objects.filter(kernel__in=compared, metric__name__in=by_metric).order_by(*lab.OLDEST_FIRST)
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


def explaining(version: str, basket: Sequence[Benchmark]) -> list[dict[str, Any]]:
    """Return the reports merged in the cycle of a kernel that may explain its index: those of the basket's metrics
    (`same_metric`), then those of its suites. What was fixed within the cycle (`fixed_in_cycle`) explains nothing.
    """
    parsed = versions.parse(version)
    if parsed is None:
        return []
    metrics = {clipped(entry.metric) for entry in at(basket, version)}
    suites = {metric.partition(".")[0] for metric in metrics}
    rows = Report.objects.filter(Q(metric__in=metrics) | Q(suite__in=suites), merged_release=parsed.cycle)
    rows = rows.exclude(verdict=Verdict.UNKNOWN)
    rows = rows.annotate(same=Case(When(metric__in=metrics, then=1), default=0)).select_related("culprit")
    reports = rows.order_by("-same", "metric", "-weight", "pk")[:MOST_REPORTS]
    return [
        {
            "report": row,
            "same_metric": row.metric in metrics,
            "fixed_in_cycle": versions.cycle_of(row.fix_landing) == parsed.cycle,
        }
        for row in reports
    ]


# --- Changing the basket ---

MOST = 150  # benchmarks: five fields each, and a form may have a thousand
DOCUMENT_KEY, CHANGES = f"basket {BASKET}", "changes"


@dataclass(frozen=True, slots=True)
class BasketRow:
    """A row of the form, as text. A row without a metric is removed."""

    metric: str
    params: str = ""
    weight: str = "1"
    since: str = ""
    until: str = ""

    @property
    def label(self) -> str:
        name = f"{self.metric} ({self.params})" if self.params else self.metric
        since, until = f", since {self.since}" if self.since else "", f", until {self.until}" if self.until else ""
        return f"{name} × {self.weight}{since}{until}"


def rows() -> list[BasketRow]:
    """Return the current basket."""
    return [
        BasketRow(entry.metric, params_text(entry.params), f"{entry.weight:g}", entry.since, entry.until)
        for entry in entries()
    ]


def newest() -> int:
    """Return the key of the newest change, 0 if there was none."""
    changes = TextRevision.objects.filter(place=DOCUMENT_KEY, name=CHANGES).order_by("-pk")
    return changes.values_list("pk", flat=True).first() or 0


@transaction.atomic
def change(new_rows: list[BasketRow], by: str, now: datetime, seen: int) -> str:
    """Replace the basket. Returns a description of the changes, "" for none. Raises InvalidInput for the first bad row.

    `seen`: the newest change when the form was loaded; if there is a newer one, nothing is changed.
    """
    if newest() != seen:
        raise InvalidInput("the basket was changed in the meantime: reload the page and try again")
    before = rows()
    checked = {number: _checked(row, number) for number, row in enumerate(new_rows, 1) if row.metric}
    kept = list(checked.values())
    keys: set[tuple[str, str, str]] = set()
    for number, row in checked.items():
        key = (row.metric, row.params, row.since)
        if key in keys:
            raise InvalidInput(f"row {number}: {row.label} is listed twice")
        keys.add(key)
    metrics = Metric.objects.in_bulk({row.metric for row in kept}, field_name="name")
    if unknown := [row.metric for row in kept if row.metric not in metrics]:
        raise InvalidInput(f"metric: there are no measurements of {unknown[0][:80]!r}")
    gone = [f"- {row.label}" for row in before if row not in kept]
    changes = "; ".join([*gone, *(f"+ {row.label}" for row in kept if row not in before)])
    if changes:
        BasketEntry.objects.filter(basket=BASKET).delete()
        BasketEntry.objects.bulk_create(
            BasketEntry(
                basket=BASKET,
                metric=metrics[row.metric],
                params=row.params,
                weight=float(row.weight),
                since=row.since,
                until=row.until,
            )
            for row in kept
        )
        prose.write(DOCUMENT_KEY, CHANGES, changes[: prose.LONGEST], by, now)
    return changes


def _checked(row: BasketRow, number: int) -> BasketRow:
    """Return the row in its normal form."""
    try:
        params = params_text(read_params(row.params))
        weight = float(row.weight or "1")
    except ValueError as error:
        raise InvalidInput(f"row {number}: {error}") from None
    if not (math.isfinite(weight) and 0 <= weight <= 1e6):
        raise InvalidInput(f"row {number}: expected a weight from 0 to a million, found {row.weight[:20]!r}")
    for name, value in (("since", row.since), ("until", row.until)):
        if value and versions.parse(value) is None:
            raise InvalidInput(f"row {number}: {name}: expected a version like v6.12, found {value[:40]!r}")
    return BasketRow(row.metric, params, f"{weight:g}", row.since, row.until)


# --- Tests behind a point ---

MOST_TESTS = 100


@dataclass(frozen=True, slots=True)
class MovedTest:
    """One test of a benchmark in both kernels. `curve`: the key of its curve; None if it has none."""

    benchmark: str
    line: ComparisonLine
    old: Cell
    new: Cell
    change: Change
    curve: int | None

    @property
    def is_single_run(self) -> bool:
        """Whether either side is one run, which shows no spread."""
        return self.old.side.n < 2 or self.new.side.n < 2

    @property
    def row_class(self) -> str:
        return (
            self.change.verdict.value
            if self.change.verdict in (ChangeVerdict.IMPROVEMENT, ChangeVerdict.REGRESSION)
            else ""
        )


def moved_tests(basket: Sequence[Benchmark], before: str, version: str) -> list[MovedTest]:
    """Return the tests that both kernels have of the basket, what moved most first; [] for the first kernel."""
    kernels = [kernel for kernel in lab.kernels_named([before, version]) if kernel]
    if not before or len(kernels) < 2:
        return []
    held = at(basket, version)
    lines = lab.compare(kernels, metrics={entry.metric for entry in held})
    counted = [(entry, line) for line in lines if (entry := benchmark_of(held, line)) and all(line.cells)]
    counted.sort(key=lambda pair: -abs(pair[1].changes[1].pct or 0.0) if pair[1].changes[1] else 0.0)
    curves = lab.curves_of([line.test for _, line in counted[:MOST_TESTS]])
    tests = []
    for entry, line in counted[:MOST_TESTS]:
        (old, new), change, curve = line.cells, line.changes[1], curves.get(line.test)
        assert old
        assert new
        assert change
        tests.append(MovedTest(entry.key, line, old, new, change, curve.pk if curve else None))
    return tests


def benchmark_of(basket: Sequence[Benchmark], line: ComparisonLine) -> Benchmark | None:
    """Return the benchmark that a test counts in; None if it counts in none."""
    return next((entry for entry in basket if entry.takes(line.test.metric, dict(line.test.params))), None)


def counted_in_index(kernels: Sequence[Kernel], lines: Collection[ComparisonLine]) -> dict[str, Any] | None:
    """Return how many `tests` two releases have in common, and how many of them are `counted` in the index of the
    second, `version`; None of other kernels.
    """
    if len(kernels) != 2 or not set(kernels) <= set(measured_releases()):
        return None
    version = kernels[-1].name
    basket = at(entries(), version)
    both = [line for line in lines if all(line.cells)]
    counted = sum(benchmark_of(basket, line) is not None for line in both)
    return {"version": version, "counted": counted, "tests": len(both)}


# --- Views ---

MOST_STUDIES = 20  # newest ones
MOST_COMMENTS = 50  # of a point, newest ones
LONGEST = 4000  # characters of a comment
MOST_OF_ONE = 5  # comments of one person on a point, so that nobody's are pushed out
_COMMENTS = "index {}"  # where the comments on a point stand among the texts
_NAME = re.compile(r"[0-9a-f]{12}\Z")


def index(request: HttpRequest) -> HttpResponse:
    """Show what the newest index means, the chart, what counts with which weight, and every point as a row."""
    points = index_points(entries())
    context = {
        "points": points[::-1],
        "meaning": meaning(points),
        "basket": basket_name(),
        "newest": next((point for point in reversed(points) if point.contributions), None),
        "studies": Study.objects.all()[:MOST_STUDIES],
        **_chart(request, points),
    }
    return render(request, "index.html", context)


def suites(request: HttpRequest) -> HttpResponse:
    """Show the index of each suite over the releases, all on one page that can be printed."""
    basket = entries()
    described = dict(Suite.objects.values_list("name", "description"))
    lines = [
        {
            "suite": suite,
            "basket": [entry for entry in basket if suite_of(entry) == suite],
            "chart": chart,
            "meaning": meaning(points),
            "description": described.get(suite, ""),
        }
        for suite, points in points_by_suite(basket).items()
        if (chart := index_chart(points))
    ]
    return render(request, "index_suites.html", {"lines": lines})


def _exported() -> list[IndexPoint]:
    """Return every point; without ends of an interval where the runs of a kernel, one of each, tell none."""
    points = index_points(entries())
    return [replace(point, low=None, high=None) if point.low == point.high else point for point in points]


def as_json(request: HttpRequest) -> JsonResponse:
    """Return every point with its parts, as JSON."""
    return JsonResponse({"points": list(map(asdict, _exported()))})


def as_csv(request: HttpRequest) -> HttpResponseBase:
    """Return every point as CSV."""
    return csv_response(INDEX, _exported())


def point_csv(request: HttpRequest, version: str) -> HttpResponseBase:
    """Return the parts of one point as CSV: a row for each benchmark."""
    return csv_response(CONTRIBUTIONS, _point(index_points(entries()), version).contributions)


def _point(points: Sequence[IndexPoint], version: str) -> IndexPoint:
    point = next((candidate for candidate in points if candidate.name == version), None)
    if point is None:
        raise Http404(f"kernel {version[:40]} is not in the index")
    return point


def point(request: HttpRequest, version: str) -> HttpResponse:
    """Show one point: its parts, what may explain it, and comments."""
    basket = entries()
    points = index_points(basket)
    index_point = _point(points, version)
    edited, place = request.GET.get("edit", ""), _COMMENTS.format(version)
    before = next((one.name for one, two in pairwise(points) if two is index_point), "")
    context = {
        "point": index_point,
        "cycle": versions.cycle_of(version),
        "before": before,
        "tests": moved_tests(basket, before, version),
        "contributions": sorted(index_point.contributions, key=lambda contribution: -abs(contribution.points)),
        "explained": explaining(version, basket),
        "comments": comments(place, MOST_COMMENTS),
        "edited": edited,
        "history": versions_of(place, edited) if _NAME.match(edited) else (),
        "may_edit_all": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "index_point.html", {**context, **_chart(request, points)})


def _chart(request: HttpRequest, points: Sequence[IndexPoint]) -> dict[str, Any]:
    return {"chart": index_chart(points), "may_edit": request.user.has_perm(CHANGE_BASKET)}


@require_POST
@sign_in_required
def comment(request: HttpRequest) -> HttpResponse:
    """Comment on a point, or change one's own comment; triagers may change any."""
    version, name = cleaned(request.POST, "version", 30), cleaned(request.POST, "name", 12)
    place, writer = _COMMENTS.format(version), username(request)
    if versions.parse(version) is None:
        return error_response(f"version: expected one like v6.12; found {version!r}")
    if not Kernel.objects.filter(name=version, variant="").exists():
        return error_response(f"version: kernel {version} is not in the index")
    # Its first author may change it, whoever changed it last
    first = next(iter(versions_of(place, name)[::-1]), None)
    if name and (first is None or not (first.by == writer or request.user.has_perm(CHANGE_REPORTS))):
        return error_response("name: you have no comment with this name", 403)
    if not name and sum(one.author == writer for one in comments(place, prose.MOST)) >= MOST_OF_ONE:
        return error_response(f"text: expected at most {MOST_OF_ONE} comments of one person; change or empty one", 403)
    text = request.POST.get("text", "")
    if len(text) > LONGEST:
        return error_response(f"text: expected at most {LONGEST:,} characters, found {len(text):,}")
    if not name and not text.strip():
        return error_response("text: expected some text; found none")
    write(place, name or secrets.token_hex(6), text, writer, timezone.now())
    return redirect("index-point", version)


def show_basket(request: HttpRequest) -> HttpResponse:
    """Show the basket, each benchmark with its weight; operators can change it."""
    may_edit = request.user.has_perm(CHANGE_BASKET)
    if request.method != "POST":
        context = {
            "rows": [*rows(), BasketRow("")] if may_edit else rows(),  # one to add
            "seen": newest(),
            "history": versions_of(DOCUMENT_KEY, CHANGES)[:50],
            "may_edit": may_edit,
        }
        return render(request, "index_basket.html", context)
    if not may_edit:
        return error_response("only operators can change the basket", 403)
    seen, number = request.POST.get("seen", "0"), len(request.POST.getlist("metric"))
    if number > MOST + 1:
        raise InvalidInput(f"expected at most {MOST} benchmarks, found {number}")
    columns = [request.POST.getlist(name) for name in ("metric", "params", "weight", "since", "until")]
    if len({len(column) for column in columns}) > 1:
        raise InvalidInput("expected the same number of values in every column")
    new_rows = [BasketRow(*(value.strip()[:500] for value in row)) for row in zip(*columns, strict=True)]
    changed = change(new_rows, username(request), timezone.now(), int(seen) if is_key(seen) else 0)
    messages.info(request, f"Changed: {changed}" if changed else "Nothing has changed.")
    return redirect("index-basket")
