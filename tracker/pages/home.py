"""`/`: the releases with their report counts, and the current cycle in detail.

The front page takes at most three queries for the releases and three for the current cycle. Each release is counted
again only after a change, as the filter counts are (tracker/pages/triage/table.py). A report in both sections of a
release counts once, and improvements are counted apart from everything else. The cycle is shown step by step between
its release candidates. Operators also see what does not work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Count, F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from tracker.charts import cycle_chart
from tracker.domain.events import OPEN, State, Verdict
from tracker.domain.versions import CyclePoint, ReportSpan, points, steps, upcoming
from tracker.models import Release, ReleaseCandidate, Report
from tracker.pages.triage.table import KEEP, stamp, stamped
from tracker.services.accounts import SEND
from tracker.services.faults import faults
from tracker.services.report_summary import ReleaseCalendar


@dataclass(slots=True)
class ReleaseLine:
    """One release with its counts. All but `improvements` leave improvements out."""

    release: Release
    open: int = 0
    blocking: int = 0
    unanswered: int = 0
    fixed: int = 0
    regressions: int = 0
    improvements: int = 0
    awaited: dict[str, int] = field(default_factory=dict)  # open ones, by who has to act next

    def add(self, verdict: str, state: str, awaited: str, blocks: bool, number: int) -> None:
        """Add `number` reports to the counts."""
        if verdict == Verdict.IMPROVEMENT:
            self.improvements += number
            return
        is_open = state in OPEN
        self.regressions += number
        self.open += number * is_open
        self.blocking += number * (is_open and blocks)
        if is_open and number:
            self.awaited[awaited] = self.awaited.get(awaited, 0) + number
        self.unanswered += number * (state == State.NO_RESPONSE)
        self.fixed += number * (state == State.FIXED)


def lines() -> list[ReleaseLine]:
    """Return every release that has a report, and the current cycle; newest first."""
    return _lines()[1]


def _lines() -> tuple[ReleaseCalendar, list[ReleaseLine]]:
    releases = list(stamped(Release.objects.order_by("number")))
    calendar = ReleaseCalendar.of(releases)
    by_version = {
        release.version: cached_line for release in releases if (cached_line := cache.get(f"line:{stamp(release)}"))
    }
    missing = [release for release in releases if release.version not in by_version]
    for version, line in _counted(missing).items():
        by_version[version] = line
        cache.set(f"line:{stamp(line.release)}", line, KEEP)
    shown = [
        line
        for release in reversed(releases)
        if (line := by_version[release.version]).release.version == calendar.current
        or line.regressions
        or line.improvements
    ]
    return calendar, shown


def _counted(releases: Sequence[Release]) -> dict[str, ReleaseLine]:
    """Count the reports of some releases; a report in both sections counts once."""
    by_version = {release.version: ReleaseLine(release) for release in releases}
    with_reports = [release for release in releases if release.news or release.other_news]  # type: ignore[attr-defined]
    versions = [release.version for release in with_reports]
    if not versions:
        return by_version
    for column, rows in (
        ("merged_release", Report.objects.filter(merged_release__in=versions)),
        (
            "shift_left_release",
            Report.objects.filter(shift_left_release__in=versions).exclude(merged_release=F("shift_left_release")),
        ),
    ):
        blocks = Count("pk", filter=~Q(blocks=""))
        grouped = (
            rows.order_by().values_list(column, "verdict", "state", "awaited").annotate(n=Count("pk"), blocking=blocks)
        )
        for version, verdict, state, awaited, number, blocking in grouped:
            by_version[version].add(verdict, state, awaited, True, blocking)
            by_version[version].add(verdict, state, awaited, False, number - blocking)
    return by_version


def home_page(now: datetime) -> dict[str, Any]:
    """Return the current cycle, None without one, and the `older` releases: at most six queries."""
    calendar, shown = _lines()
    older = [line for line in shown if line.release.version != calendar.current]
    line = next((line for line in shown if line.release.version == calendar.current), None)
    started_at = calendar.ends[-1] if calendar.ends else None
    return {"cycle": _cycle(line, started_at, now) if line else None, "older": older}


def _cycle(line: ReleaseLine, started_at: datetime | None, now: datetime) -> dict[str, Any]:
    """Return the current cycle, step by step between its candidates. `since`: the last one that is out."""
    version = line.release.version
    tagged = dict(ReleaseCandidate.objects.filter(release=line.release).values_list("number", "tagged_at"))
    candidates = points(version, tagged)
    cycle_steps = steps([*candidates, CyclePoint("now", now)], _report_spans(line.release))
    return {
        "line": line,
        "steps": cycle_steps,
        "chart": cycle_chart(cycle_steps),
        "next": upcoming(version, started_at, tagged, now),
        "since": candidates[-1] if candidates else None,
        "new": cycle_steps[-1].new,
        "closed": cycle_steps[-1].closed,
    }


def _report_spans(release: Release) -> list[ReportSpan]:
    key = f"lives:{stamp(release)}"
    spans: list[ReportSpan] | None = cache.get(key)
    if spans is None:
        columns = ("reported_at", "closed_at", "state", "verdict")
        merged = Report.objects.filter(merged_release=release.version).values_list(*columns)
        shifted = (
            Report.objects.filter(shift_left_release=release.version)
            .exclude(merged_release=release.version)
            .values_list(*columns)
        )
        spans = [
            ReportSpan(reported, closed, state in OPEN, verdict != Verdict.IMPROVEMENT)
            for rows in (merged, shifted)
            for reported, closed, state, verdict in rows
        ]
        cache.set(key, spans, KEEP)
    return spans


# --- Views ---


def releases(request: HttpRequest) -> HttpResponse:
    """Show the current cycle, then every other release with its counts; operators also see what does not work."""
    now = timezone.now()
    context = {**home_page(now), "faults": faults(now) if request.user.has_perm(SEND) else []}
    return render(request, "home.html", context)
