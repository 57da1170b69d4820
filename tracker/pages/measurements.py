"""`/curve/…`, `/curves/` and `/changes/`: curves, and changes that no report says.

A curve is shown over a range of time, with its changes, the reports measured there with their fixes, and releases;
this takes a constant number of queries, and the script that draws it gets the same as JSON. First comes its last
change: how large, since when, and who was told. Two to four curves can be laid over one another. The list of changes
has regressions, and changes of metrics without a known direction, unless all are asked for.

A change is also handed out as a request for a bisection: JSON for a lab (perf-bisect-request/1), or a script for `git
bisect`. A commit is bad beyond the middle of the two levels.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_safe

from tracker.charts import CURVE_MOST_DOTS, CurveChart, CurveMark, Stretch, curve_chart, overlay
from tracker.documents.csv_tables import BUILDS
from tracker.domain import text as formats
from tracker.domain import timeline, versions
from tracker.domain.curves import Build, builds_of
from tracker.domain.events import InvalidInput, State, TreeRole
from tracker.domain.search import field_value
from tracker.models import Commit, Curve, CurveChange, Finding, Landing
from tracker.models.measurements import revision_of
from tracker.pages.http import csv_response, is_key, key_in, row_or_404
from tracker.services import curves as storage

# --- Requests for a bisection ---

# Pure.
FORMAT = "perf-bisect-request/1"


def as_json(change: CurveChange) -> dict[str, Any]:
    """Return the request: the two commits, the test, and the levels that tell good from bad."""
    curve = change.curve
    return {
        "schema": FORMAT,
        "id": f"curve-{curve.pk}-{change.build}",
        "good": revision_of(change.before),
        "bad": revision_of(change.build),
        "test": {"suite": curve.scenario.suite, "params": curve.scenario.params},
        "machine": {"id": curve.machine.name},
        "metric": curve.metric.name,
        "unit": curve.metric.unit,
        "direction": curve.metric.direction,
        "good_level": change.old_level,
        "bad_level": change.new_level,
        "threshold": _threshold(change),
        "noise_pct": change.noise_pct,
    }


def _threshold(change: CurveChange) -> float:
    """Return the value in the middle of the two levels: beyond it a commit is bad."""
    return (change.old_level + change.new_level) / 2


def as_script(change: CurveChange) -> str:
    """Return a shell script that bisects with a command of the lab's, which prints the value of one run."""
    curve, rises = change.curve, change.new_level > change.old_level
    metric, machine, scenario = (
        formats.printable(text, "?")[:300]  # a comment, on one line
        for text in (curve.metric.name, curve.machine.name, str(curve.scenario))
    )
    lines = [
        "#!/bin/sh",
        f"# {metric} on {machine}: {scenario}",
        f"# good: {change.old_level:.6g}, bad: {change.new_level:.6g}; a commit is bad "
        f"{'above' if rises else 'below'} {_threshold(change):.6g}",
        "# MEASURE: your command that builds and measures the checked-out commit, and prints one number.",
        "set -eu",
        ': "${MEASURE:?set MEASURE to a command that prints one number}"',
        f"git bisect start {shlex.quote(revision_of(change.build))} {shlex.quote(revision_of(change.before))}",
        "git bisect run sh -c '",
        '  value=$(eval "$MEASURE") || exit 125',
        f'  awk -v value="$value" "BEGIN {{ exit (value {">" if rises else "<"} {_threshold(change)!r}) }}"',
        "'",
        "",
    ]
    return "\n".join(lines)


# --- Data of the pages ---

MOST = 5000  # builds on a page, the newest
TABLE = 25  # rows of the table beside the chart, the newest
LISTED = 60  # curves in the list of a metric or a machine
PER_PAGE = 100  # changes
SHA = 40  # digits, which no version has


@dataclass(frozen=True, slots=True)
class CurvePage:
    """A curve over a range of time. `builds` and `marks` are drawn; `cut`: whether there are older builds."""

    curve: Curve
    builds: Sequence[Build]
    changes: Sequence[CurveChange]
    chart: CurveChart | None
    marks: Sequence[CurveMark]
    stretches: Sequence[Stretch]
    cut: bool

    @property
    def newest(self) -> list[Build]:
        return list(reversed(self.builds[-TABLE:]))

    @property
    def lead(self) -> CurveLead | None:
        """The last change among the builds that are shown; None without one."""
        change = _last_change(self.changes, self.builds)
        return _lead(self.curve, change) if change else None


@dataclass(frozen=True, slots=True)
class CurveLead:
    """What a reader needs first of a curve: how far it moved, with its interval and in noise, since when."""

    change: CurveChange
    number: str
    interval: str
    values: str
    noise: str
    label: str
    tone: str


def _last_change(changes: Iterable[CurveChange], builds: Iterable[Build]) -> CurveChange | None:
    """Return the last of the changes that lie among these builds."""
    shown = {build.name for build in builds}
    return max((change for change in changes if change.build in shown), key=lambda change: change.at, default=None)


def _lead(curve: Curve, change: CurveChange) -> CurveLead:
    verdict = {True: "regression", False: "improvement", None: ""}[change.is_regression]
    unit = f" {curve.metric.unit}" if curve.metric.unit else ""
    report, noise = change.report, ""
    if curve.noise and (spread := curve.noise["build_pct"]) and change.change_pct_raw is not None:
        times = formats.multiple(abs(change.change_pct_raw) / spread)
        noise = f"{times} the spread between builds, which is {spread:.1f}%"
    return CurveLead(
        change=change,
        number=timeline.change(change.change_pct_raw, verdict),
        interval=timeline.bounds(change.low_pct, change.high_pct),
        values=f"{formats.number(change.old_level)} → {formats.number(change.new_level)}{unit}",
        noise=noise,
        label=timeline.LABELS[State(report.state)] if report else "Not reported",
        tone=timeline.tone(report.state) if report else "bad" if change.is_regression else "wait",
    )


def curve_page(pk: int, since: datetime | None, until: datetime | None) -> CurvePage:
    """Return the page of a curve, from one day to another; raise Http404 if there is none of this number."""
    curves = Curve.objects.filter(pk=pk).select_related("metric", "scenario", "machine")
    curve = row_or_404(curves, f"there is no curve {pk}")
    every = _builds(curve, since, until)
    builds = every[-MOST:]
    changes = list(curve.changes.select_related("report__culprit").order_by("at"))
    marks = list(_marks(curve, builds, changes))
    stretches = list(_stretches(builds, changes))
    chart = curve_chart(builds, marks, stretches)
    return CurvePage(curve, builds, changes, chart, marks, stretches, len(every) > len(builds))


def _builds(curve: Curve, since: datetime | None, until: datetime | None) -> list[Build]:
    """Return the builds of a curve from one day to another, both included."""
    return builds_of(storage.load(curve, since, until + timedelta(days=1) if until else None))


def _stretches(builds: Sequence[Build], changes: Sequence[CurveChange]) -> Iterator[Stretch]:
    """Yield the builds between changes, as far as they are shown; nothing for a curve that never moved."""
    ends = [next((n for n, build in enumerate(builds) if build.at >= change.at), len(builds)) for change in changes]
    levels = [change.old_level for change in changes[:1]] + [change.new_level for change in changes]
    for first, end, level in zip([0, *ends], [*ends, len(builds)], levels, strict=False):
        if first < end:
            yield Stretch(first, end - 1, level)


def titles_of(builds: Collection[Build]) -> dict[str, str]:
    """Return the titles of the commits among these builds that are known, in one query."""
    return dict(Commit.objects.filter(sha__in=[build.name for build in builds]).values_list("sha", "title"))


def _marks(curve: Curve, builds: Sequence[Build], changes: Sequence[CurveChange]) -> Iterator[CurveMark]:
    """Yield changes without a report, the reports measured here with their fixes, and releases."""
    reported: set[str] = set()
    findings = Finding.objects.filter(metric=curve.metric, scenario=curve.scenario, machine=curve.machine)
    landed = Landing.objects.filter(tree__role=TreeRole.MAINLINE, gone_at=None, commit__sha=OuterRef("report__fix_sha"))
    rows = findings.annotate(fix_landed_at=Subquery(landed.values("merged_at")[:1]))
    columns = ("report__culprit__sha", "report__fix_sha", "change_pct_raw", "fix_landed_at")
    for culprit, fix, change, fix_landed_at in rows.values_list(*columns)[:500]:
        reported.add(culprit)
        page = reverse("report", args=[culprit])
        yield CurveMark(culprit, "culprit", f"report {formats.page_pct(change)}", page)
        if fix:
            yield CurveMark(_first_with(builds, fix, fix_landed_at), "fix", "fix", page)
    for curve_change in changes:
        if curve_change.build not in reported:
            report = curve_change.report
            href = reverse("report", args=[report.culprit.sha]) if report else reverse("changes")
            yield CurveMark(curve_change.build, "change", formats.page_pct(curve_change.change_pct_raw), href)
    for build in builds:
        if len(build.name) < SHA and (version := versions.parse(build.name)) and version.is_release:
            yield CurveMark(build.name, "release", build.name)


def _first_with(builds: Sequence[Build], fix: str, landed_at: datetime | None) -> str:
    """Return the first build with a fix: itself, if it was measured, else the first one since it landed; "" if none."""
    if landed_at is None or any(build.name == fix for build in builds):
        return fix
    return next((build.name for build in builds if build.at >= landed_at), "")


def drawn(page: CurvePage) -> dict[str, Any]:
    """Return the columns that the script draws as JSON values, rounded to six digits.

    `samples` are those of each build; none for more than are drawn one by one.
    """
    builds, titles = page.builds, titles_of(page.builds)
    dotted = sum(len(build.samples) for build in builds) <= CURVE_MOST_DOTS

    def rounded(values: Iterator[float]) -> list[float]:
        return [float(f"{value:.6g}") for value in values]

    places = {build.name: place for place, build in enumerate(builds)}
    return {
        "names": [build.name[:12] if len(build.name) >= 40 else build.name for build in builds],
        "dates": [int(build.at.timestamp()) for build in builds],
        "means": rounded(build.mean for build in builds),
        "low": rounded(build.low for build in builds),
        "high": rounded(build.high for build in builds),
        "runs": [len(build.samples) for build in builds],
        "samples": [rounded(iter(build.samples)) for build in builds] if dotted else [],
        "titles": [titles.get(build.name, "") for build in builds],
        "levels": [[part.first, part.last, float(f"{part.level:.6g}")] for part in page.stretches],
        "marks": [
            [places[mark.build], mark.kind, mark.label, mark.href] for mark in page.marks if mark.build in places
        ],
        "unit": page.curve.metric.unit,
        "metric": page.curve.metric.name,
    }


def curves_of(kind: str, name: str) -> list[Curve]:
    """Return the curves of a metric or a machine, the newest first."""
    curves = Curve.objects.filter(**{f"{kind}__name": name}).select_related("metric", "scenario", "machine")
    return list(curves.order_by("-last_at", "pk")[: LISTED + 1])


# --- Views ---

LAST_YEAR = 9000  # beyond it, a day more is beyond the calendar
MOST_CURVES = 4  # over one another
_RELATED = ("curve__metric", "curve__scenario", "curve__machine")


@require_safe
def curve(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a curve, in the range that `since` and `until` give."""
    since, until = _day(request, "since"), _day(request, "until")
    page = curve_page(pk, since, until)
    if request.GET.get("format") == "json":
        return JsonResponse(drawn(page))
    places = (("metric", page.curve.metric.name), ("machine", page.curve.machine.name))
    follow = " ".join(f"{kind}:{field_value(name)}" for kind, name in places)
    context = {
        "page": page,
        "lead": page.lead,
        "titles": titles_of(page.newest),
        "follow": follow,
        "since": since,
        "until": until,
    }
    return render(request, "curve.html", context)


@require_safe
def curve_svg(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the picture of a curve, in the range that `since` and `until` give."""
    page = curve_page(pk, _day(request, "since"), _day(request, "until"))
    if page is None or page.chart is None:
        raise Http404(f"curve {pk} has no picture: fewer than two builds were measured in this range")
    name = f"{page.curve.metric.name} on {page.curve.machine.name}"
    context = {"chart": page.chart, "standalone": formats.printable(name, "?")}
    return render(request, "curve_chart.html", context, content_type="image/svg+xml")


@require_safe
def curve_csv(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return every build of a curve as CSV, in the range that `since` and `until` give."""
    since, until = _day(request, "since"), _day(request, "until")
    return csv_response(
        BUILDS, _builds(row_or_404(Curve.objects.filter(pk=pk), f"there is no curve {pk}"), since, until)
    )


@require_safe
def curves(request: HttpRequest) -> HttpResponse:
    """Show curves over one another: those of `of`, two to four, since `since`."""
    chosen = list(dict.fromkeys(request.GET.getlist("of")))
    if len(chosen) == 1 and is_key(chosen[0]):
        return redirect("curve", int(chosen[0]))
    if not 2 <= len(chosen) <= MOST_CURVES or not all(map(is_key, chosen)):
        raise InvalidInput(f"of: expected the numbers of two to {MOST_CURVES} curves, as in ?of=1&of=2")
    since = _day(request, "since")
    pks = list(map(int, chosen))
    stored = Curve.objects.filter(pk__in=pks).select_related("metric", "scenario", "machine")
    stored = stored.prefetch_related("changes")
    curves = sorted(stored, key=lambda curve: pks.index(curve.pk))
    if len(curves) < len(chosen):
        raise Http404("there is no such curve")
    builds = [builds_of(storage.load(curve, since))[-MOST:] for curve in curves]
    chart = overlay(builds)
    lines = chart.lines if chart else [""] * len(curves)
    rows = [
        {"curve": curve, "builds": shown, "line": line, "change": _last_change(curve.changes.all(), shown)}
        for curve, shown, line in zip(curves, builds, lines, strict=True)
    ]
    return render(request, "curves.html", {"chart": chart, "rows": rows, "since": since})


def _day(request: HttpRequest, name: str) -> datetime | None:
    """Return a day of the query string; raise InvalidInput for anything else."""
    text = request.GET.get(name, "")
    try:
        day = parse_date(text) if text else None
    except ValueError:
        day = None
    if text and (day is None or day.year > LAST_YEAR):
        raise InvalidInput(f"{name}: expected a day like 2026-03-01; found {text[:40]!r}")
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


@require_safe
def changes(request: HttpRequest) -> HttpResponse:
    """List the changes that no report says, the last found first; regressions only unless `all` is on."""
    before, everything = key_in(request.GET, "before"), request.GET.get("all") == "on"
    related = CurveChange.objects.filter(report__isnull=True).select_related(*_RELATED)
    if not everything:
        related = related.filter(Q(is_regression=True) | Q(is_regression__isnull=True))
    if before is not None:
        related = related.filter(pk__lt=before)
    rows = list(related.order_by("-pk")[: PER_PAGE + 1])
    older = rows[PER_PAGE - 1].pk if len(rows) > PER_PAGE else None
    context = {"changes": rows[:PER_PAGE], "older": older, "everything": everything}
    return render(request, "changes.html", context)


@require_safe
def bisect(request: HttpRequest, pk: int, form: str) -> HttpResponse:
    """Hand out a change as a request for a bisection."""
    change = row_or_404(CurveChange.objects.select_related(*_RELATED).filter(pk=pk), f"there is no change {pk}")
    if not change.is_bisectable:
        raise Http404(f"{change.before} and {change.build} are one kernel: no commit lies between them")
    if form == "json":
        return JsonResponse(as_json(change), json_dumps_params={"indent": 2})
    response = HttpResponse(as_script(change), content_type="text/x-shellscript; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="bisect-{change.pk}.sh"'
    return response
