"""The releases with what there is to see in each; the current cycle in detail.

Counted once after a change, as the filters of a table are (tracker/triage/counts.py), and never all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Count, F, Q

from tracker.cycle import Chart, Life, Point, Step, chart, points, steps, upcoming
from tracker.models import Candidate, Release, Report
from tracker.status import OPEN, State, Verdict
from tracker.triage.counts import KEEP, stamp, stamped


@dataclass(slots=True)
class Line:
    """One release with its counts. Improvements are counted by themselves, all else is of regressions."""

    release: Release
    open: int = 0
    blocking: int = 0
    unanswered: int = 0
    fixed: int = 0
    regressions: int = 0
    improvements: int = 0

    def add(self, verdict: str, state: str, blocks: bool, number: int) -> None:
        """Count reports in."""
        if verdict == Verdict.IMPROVEMENT:
            self.improvements += number
            return
        is_open = state in OPEN
        self.regressions += number
        self.open += number * is_open
        self.blocking += number * (is_open and blocks)
        self.unanswered += number * (state == State.NO_RESPONSE)
        self.fixed += number * (state == State.FIXED)


@dataclass(frozen=True, slots=True)
class Cycle:
    """The cycle that goes on: what happened between its candidates. `since`: the last candidate that is out."""

    line: Line
    steps: Sequence[Step]
    chart: Chart | None
    next: Point | None
    since: Point | None
    new: int
    closed: int


@dataclass(frozen=True, slots=True)
class Desk:
    """The front page."""

    current: Cycle | None
    older: Sequence[Line]


def lines() -> list[Line]:
    """Every release that has a report, and the current cycle; the newest first."""
    releases = list(stamped(Release.objects.order_by("-number")))
    current = _current(releases)
    known = {release.version: found for release in releases if (found := cache.get(f"line:{stamp(release)}"))}
    missing = [release for release in releases if release.version not in known]
    for version, line in _counted(missing).items():
        known[version] = line
        cache.set(f"line:{stamp(line.release)}", line, KEEP * 60)
    return [
        known[release.version]
        for release in releases
        if release is current or known[release.version].regressions or known[release.version].improvements
    ]


def _counted(releases: Sequence[Release]) -> dict[str, Line]:
    """The counts of some releases; a report that stands in both sections counts once."""
    found = {release.version: Line(release) for release in releases}
    some = [release for release in releases if release.news or release.other_news]  # type: ignore[attr-defined]
    versions = [release.version for release in some]
    if not versions:
        return found
    for column, rows in (
        ("merged", Report.objects.filter(merged__in=versions)),
        ("shifted", Report.objects.filter(shifted__in=versions).exclude(merged=F("shifted"))),
    ):
        blocks = Count("pk", filter=~Q(blocks=""))
        grouped = rows.order_by().values_list(column, "verdict", "state").annotate(n=Count("pk"), blocking=blocks)
        for version, verdict, state, number, blocking in grouped:
            found[version].add(verdict, state, True, blocking)
            found[version].add(verdict, state, False, number - blocking)
    return found


def _current(releases: Sequence[Release]) -> Release | None:
    """The cycle after the last release: the first that no tag has ended yet."""
    last = max((release.number for release in releases if release.released_at), default=0)
    return min((each for each in releases if each.number > last), key=lambda each: each.number, default=None)


def desk(now: datetime) -> Desk:
    """The front page: three queries for the releases, three for the cycle that goes on; less where nothing changed."""
    told = lines()
    current = _current([line.release for line in told])
    older = [line for line in told if line.release is not current]
    line = next((line for line in told if line.release is current), None)
    return Desk(cycle(line, older, now) if line else None, older)


def cycle(line: Line, older: Sequence[Line], now: datetime) -> Cycle:
    """What happened in a cycle, candidate by candidate."""
    version = line.release.version
    ends = Release.objects.filter(number__lt=line.release.number, released_at__isnull=False)
    began = ends.order_by("-number").values_list("released_at", flat=True).first()
    tags = Candidate.objects.filter(release=line.release).values_list("number", "tagged_at")
    tagged: Mapping[int, datetime] = dict(tags)
    found = points(version, began, None, tagged)
    lives = _lives(line.release)
    told = steps([*found, Point("now", now, known=True)], lives)
    return Cycle(
        line,
        told,
        chart(told),
        upcoming(version, began, tagged, now),
        found[-1] if found else None,
        told[-1].new,
        told[-1].closed,
    )


def _lives(release: Release) -> list[Life]:
    key = f"lives:{stamp(release)}"
    lives: list[Life] | None = cache.get(key)
    if lives is None:
        columns = ("reported_at", "closed_at", "state", "verdict")
        merged = Report.objects.filter(merged=release.version).values_list(*columns)
        shifted = Report.objects.filter(shifted=release.version).exclude(merged=release.version).values_list(*columns)
        lives = [
            Life(reported, closed, state in OPEN, verdict != Verdict.IMPROVEMENT)
            for rows in (merged, shifted)
            for reported, closed, state, verdict in rows
        ]
        cache.set(key, lives, KEEP)
    return lives
