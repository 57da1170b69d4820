"""`/`: what is open in the current cycle and what is worst, what happened this week, and the other releases.

The front page takes at most three queries for the releases, three for the current cycle, two for its worst reports and
two for the week. Each release is counted again only after a change, as the filter counts are
(tracker/pages/triage/table.py). A report in both sections of a release counts once, and improvements are counted apart
from everything else. Operators also see what does not work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Exists, F, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from tracker.charts import cycle_chart
from tracker.domain import timeline
from tracker.domain.events import OPEN, EventKind, State, Verdict
from tracker.domain.text import age
from tracker.domain.versions import CyclePoint, ReportSpan, points, steps, upcoming
from tracker.models import Event, Message, Release, ReleaseCandidate, Report
from tracker.pages.http import kept
from tracker.pages.triage.table import KEEP, stamp, stamped
from tracker.services.accounts import SEND
from tracker.services.faults import faults
from tracker.services.report_summary import ReleaseCalendar, headline_of, in_cycle, with_headlines


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

    @property
    def closed(self) -> int:
        return self.regressions - self.open

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
    spans = kept(f"lives:{stamp(line.release)}", lambda: _report_spans(version), KEEP)
    course = steps([*candidates, CyclePoint("now", now)], spans)
    return {
        "line": line,
        "steps": course,
        "chart": cycle_chart(course),
        "next": upcoming(version, started_at, tagged, now),
        "since": candidates[-1] if candidates else None,
        "new": course[-1].new,
        "closed": course[-1].closed,
    }


def _report_spans(version: str) -> list[ReportSpan]:
    regressions = Report.objects.exclude(verdict=Verdict.IMPROVEMENT)
    merged = regressions.filter(merged_release=version)
    shifted = regressions.filter(shift_left_release=version).exclude(merged_release=version)
    return [
        ReportSpan(reported, closed, state in OPEN)
        for rows in (merged, shifted)
        for reported, closed, state in rows.values_list("reported_at", "closed_at", "state")
    ]


# --- The worst of a cycle ---

WORST = 5


@dataclass(frozen=True, slots=True)
class WorstRow:
    """One of the worst open regressions. `waiting`, `open_for`: durations, "" where they are not known."""

    report: Report
    title: str
    author: str
    change: str
    interval: str
    single_runs: bool
    bar: int  # the change as the width of its bar
    label: str
    tone: str
    awaited: str
    waiting: str
    open_for: str


def worst(version: str, now: datetime) -> list[WorstRow]:
    """Return the worst open regressions of a cycle: those of which most of the change is certain."""
    rows = with_headlines(Report.objects.select_related("culprit")).filter(
        in_cycle(version), state__in=sorted(OPEN), verdict=Verdict.REGRESSION
    )
    reports = list(rows.order_by("-weight", "pk")[:WORST])
    largest = max((abs(report.change or 0) for report in reports), default=0) or 1
    return [_worst_row(report, largest, now) for report in reports]


def _worst_row(report: Report, largest: float, now: datetime) -> WorstRow:
    headline = headline_of(report)
    title = report.given_title or report.culprit.title or str(report)
    author = report.culprit.author_name or report.culprit.author_email
    return WorstRow(
        report=report,
        title=title.removeprefix(f"{report.subsystem}: "),
        author=author,
        change=timeline.change(report.change, report.verdict),
        interval=timeline.bounds(headline.low_pct, headline.high_pct) if headline else "",
        single_runs=headline is not None and headline.has_single_runs,
        bar=round(60 * abs(report.change or 0) / largest),
        label=timeline.LABELS[State(report.state)],
        tone=timeline.tone(report.state),
        awaited=timeline.awaited(report.awaited, author, report.reporter, is_bisected=not report.culprit.placeholder),
        waiting=age(report.awaited_since, now),
        open_for=age(report.reported_at, now),
    )


# --- The week ---

WEEK = timedelta(days=7)
NEWS, MOST_NEWS = 10, 200
# What a reader of the front page wants to know; notes, titles and the like are on the report's page.
_TELLING = sorted(
    frozenset(EventKind)
    - {
        EventKind.SAME_PATCH, EventKind.IN_NEXT, EventKind.GONE, EventKind.NOTED, EventKind.RETITLED,
        EventKind.REMINDERS_OFF, EventKind.READING_REJECTED, EventKind.REVERSED, EventKind.RESPONDED,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewsLine:
    """Something that happened: who did what, to which report."""

    at: datetime
    who: str
    what: str
    sha: str
    about: str
    change: str


def _short_name(report: Report) -> str:
    """Return the subsystem, else the culprit, else what the report is called while nobody has bisected it."""
    return report.subsystem or (str(report) if report.culprit.placeholder else report.culprit.sha10)


def week(now: datetime) -> tuple[list[NewsLine], str]:
    """Return what happened in the last seven days, newest first: of each report the last, and what closes reports
    before the rest; and how many events more there were, "190+" for very many. What somebody undid is left out.
    """
    rows = Event.objects.filter(occurred_at__range=(now - WEEK, now), kind__in=_TELLING)
    undone = Event.objects.filter(report=OuterRef("report"), reverses=OuterRef("key"))
    rows = rows.filter(~Exists(undone)).order_by("-occurred_at", "-pk")
    newest = list(rows.values_list("pk", "report", "report__closed_at")[:MOST_NEWS])
    last: dict[int, int] = {}
    for pk, report, _ in newest:
        last.setdefault(report, pk)
    closing = {pk for pk, _, closed_at in newest if closed_at and closed_at > now - WEEK}
    chosen = sorted(last.values(), key=lambda pk: pk not in closing)[:NEWS]
    events = list(rows.filter(pk__in=chosen).select_related("report__culprit"))
    ids = {event.message_id for event in events if event.message_id}
    mails = Message.objects.filter(message_id__in=ids, public=True).exclude(kind="self")
    senders = mails.values_list("message_id", "author_name", "author_email")
    persons = {message_id: name or email for message_id, name, email in senders}
    news = [
        NewsLine(
            event.occurred_at,
            *timeline.told(event.value(), persons.get(event.message_id, "")),
            event.report.culprit.sha,
            _short_name(event.report),
            timeline.change(event.report.change, event.report.verdict),
        )
        for event in events
    ]
    more = len(newest) - len(news)
    return news, f"{more}+" if len(newest) == MOST_NEWS else str(more or "")


# --- Views ---

_SHOWN = 3  # older releases; the others are folded


def releases(request: HttpRequest) -> HttpResponse:
    """Show the current cycle with its worst reports, the week, and the other releases; operators also see faults."""
    now = timezone.now()
    page = home_page(now)
    older: list[ReleaseLine] = page["older"]
    news, more_news = week(now)
    shown = worst(page["cycle"]["line"].release.version, now) if page["cycle"] else []
    context = {
        **page,
        "worst": shown,
        "unplaced": not (shown or older) and Report.objects.exists(),
        "week": news,
        "more_news": more_news,
        "changed_after": f"{now - WEEK:%Y-%m-%d}",
        "with_people": any(row.report.of_person for row in shown),
        "older": older[:_SHOWN],
        "folded": older[_SHOWN:],
        "folded_open": sum(line.open for line in older[_SHOWN:]),
        "open_elsewhere": sum(line.open for line in older),
        "faults": faults(now) if request.user.has_perm(SEND) else [],
    }
    return render(request, "home.html", context)
