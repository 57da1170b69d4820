"""The releases with what there is to see in each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tracker.models import Release, Report
from tracker.models.report import SHOWN
from tracker.models.tree import TreeRole
from tracker.status import OPEN, Verdict


@dataclass(slots=True)
class Line:
    """One release with its counts: what is open, all regressions, all improvements."""

    release: Release
    open: int = 0
    regressions: int = 0
    improvements: int = 0

    def count(self, verdict: str, state: str) -> None:
        """Count one report in."""
        self.regressions += verdict == Verdict.REGRESSION
        self.improvements += verdict == Verdict.IMPROVEMENT
        self.open += state in OPEN


def lines() -> list[Line]:
    """Every release that has a report, and the current cycle; the newest first. Two queries, whatever there is."""
    releases = list(Release.objects.order_by("number"))
    by_version = {release.version: Line(release) for release in releases}
    ends = [release for release in releases if release.released_at]
    moments = [release.released_at for release in ends if release.released_at]
    reports = Report.objects.filter(SHOWN).values_list("verdict", "state", "cycle", "reported_at", "tree__role")
    for verdict, state, cycle, reported_at, role in reports.iterator():
        versions = {cycle} if cycle else set()
        if reported_at and (role != TreeRole.MAINLINE or not cycle):
            place = bisect_left(moments, reported_at)
            versions.add(ends[place].version if place < len(ends) else _current(releases, ends))
        for version in versions & by_version.keys():
            by_version[version].count(verdict, state)
    newest = _current(releases, ends)
    told = [
        line for line in by_version.values() if line.regressions or line.improvements or line.release.version == newest
    ]
    return sorted(told, key=lambda line: -line.release.number)


def _current(releases: Sequence[Release], ends: Sequence[Release]) -> str:
    """The cycle after the last release; "" where no tag or fact names it yet."""
    later = [release for release in releases if not ends or release.number > ends[-1].number]
    return later[0].version if later else ""
