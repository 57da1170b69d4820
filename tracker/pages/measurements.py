"""The data of a curve's page, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.urls import reverse

from tracker.charts.curve import CurveChart, CurveMark, chart
from tracker.charts.overlay import CurveOverlay, overlay
from tracker.domain import versions
from tracker.domain.curves.builds import Build, builds_of
from tracker.domain.events import TreeRole
from tracker.domain.statistics.change import change_pct
from tracker.domain.text.formats import signed_pct
from tracker.models import Curve, CurveChange, Finding, Landing
from tracker.services.curves import storage

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
    cut: bool

    @property
    def newest(self) -> list[Build]:
        return list(reversed(self.builds[-TABLE:]))


def curve_page(pk: int, since: datetime | None, until: datetime | None) -> CurvePage | None:
    """Return the page of a curve; None if there is none of this number."""
    curve = Curve.objects.filter(pk=pk).select_related("metric", "scenario", "machine").first()
    if curve is None:
        return None
    every = builds_of(storage.load(curve, since, until))
    builds = every[-MOST:]
    changes = list(curve.changes.select_related("report__culprit").order_by("at"))
    marks = list(_marks(curve, builds, changes))
    return CurvePage(curve, builds, changes, chart(builds, marks), marks, len(every) > len(builds))


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
        yield CurveMark(culprit, "culprit", f"report {signed_pct(change)}", page)
        if fix:
            yield CurveMark(_first_with(builds, fix, fix_landed_at), "fix", "fix", page)
    for each in changes:
        if each.build not in reported:
            href = reverse("report", args=[each.report.culprit.sha]) if each.report else reverse("changes")
            yield CurveMark(each.build, "change", signed_pct(each.change_pct_raw), href)
    for build in builds:
        if len(build.name) < SHA and (version := versions.parse(build.name)) and version.is_release:
            yield CurveMark(build.name, "release", build.name)


def _first_with(builds: Sequence[Build], fix: str, landed_at: datetime | None) -> str:
    """Return the first build with a fix: itself, if it was measured, else the first one since it landed; "" if none."""
    if landed_at is None or any(build.name == fix for build in builds):
        return fix
    return next((build.name for build in builds if build.at >= landed_at), "")


def drawn(page: CurvePage) -> dict[str, Any]:
    """Return the columns that the script draws as JSON values, rounded to six digits."""
    builds = page.builds

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
        "marks": [[places[each.build], each.kind, each.label] for each in page.marks if each.build in places],
        "unit": page.curve.metric.unit,
        "metric": page.curve.metric.name,
    }


@dataclass(frozen=True, slots=True)
class OverlaidCurve:
    """One of the curves of an overlay, with what its last level is against its first."""

    curve: Curve
    builds: Sequence[Build]
    line: str

    @property
    def change_pct(self) -> float | None:
        ends = [median([each.level for each in part]) for part in (self.builds[:5], self.builds[-5:]) if part]
        return change_pct(ends[0], ends[-1]) if ends else None


def overlaid(pks: Sequence[int], since: datetime | None) -> tuple[CurveOverlay | None, list[OverlaidCurve]]:
    """Return the overlay of curves, in the order given, without those that there are not."""
    rows = Curve.objects.filter(pk__in=pks).select_related("metric", "scenario", "machine")
    found = sorted(rows, key=lambda each: pks.index(each.pk))
    builds = [builds_of(storage.load(each, since))[-MOST:] for each in found]
    drawn = overlay(builds)
    lines = drawn.lines if drawn else [""] * len(found)
    return drawn, [OverlaidCurve(*each) for each in zip(found, builds, lines, strict=True)]


def curves_of(kind: str, name: str) -> list[Curve]:
    """Return the curves of a metric or a machine, the newest first."""
    found = Curve.objects.filter(**{f"{kind}__name": name}).select_related("metric", "scenario", "machine")
    return list(found.order_by("-last_at", "pk")[: LISTED + 1])


def changes_page(before: int | None, *, everything: bool) -> list[CurveChange]:
    """Return a page of changes without a report, the last found first; regressions only unless `everything`."""
    rows = CurveChange.objects.filter(report__isnull=True)
    if not everything:
        rows = rows.filter(Q(is_regression=True) | Q(is_regression__isnull=True))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    related = rows.select_related("curve__metric", "curve__scenario", "curve__machine")
    return list(related.order_by("-pk")[: PER_PAGE + 1])
