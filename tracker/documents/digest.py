"""The weekly digest: the regressions of a cycle, sorted by what happened to them in seven days.

A report stands in the first section that fits. `week` and `compose` are pure; the reports of the current cycle, or of
a given one, come from two queries.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse

from tracker.documents.blocks import Block, Bullets, Document, DocumentLink, Heading, Paragraph, TableBlock
from tracker.domain.events import OPEN, State, Verdict
from tracker.models import Release, Report
from tracker.services.report_summary import ReleaseCalendar

WEEK = timedelta(days=7)
MOST = 50  # reports per section; a link leads to the others
_FIX = frozenset({State.FIX_PROPOSED, State.FIX_CONFIRMED, State.FIX_QUEUED})


@dataclass(frozen=True, slots=True)
class DigestLine:
    """A regression. `blocks`: the release that it blocks."""

    sha: str
    title: str
    metric: str
    state: str
    status: str
    reported_at: datetime | None
    closed_at: datetime | None
    blocks: str


@dataclass(frozen=True, slots=True)
class Week:
    """The sections; a report is in the first that fits. All but `closed` are open."""

    new: Sequence[DigestLine]
    silent: Sequence[DigestLine]
    fixable: Sequence[DigestLine]
    answered: Sequence[DigestLine]
    closed: Sequence[DigestLine]

    @property
    def open(self) -> Sequence[DigestLine]:
        return [*self.new, *self.silent, *self.fixable, *self.answered]

    def __bool__(self) -> bool:
        return bool(self.open or self.closed)


def week(reports: Iterable[DigestLine], now: datetime) -> Week:
    """Sort reports by what happened in the last seven days. Silent: reported earlier, and not answered."""
    since = now - WEEK
    new, silent, fixable, answered, closed = [], [], [], [], []
    for report in reports:
        if report.state not in OPEN:
            if report.closed_at and report.closed_at > since:
                closed.append(report)
        elif report.state in _FIX:
            fixable.append(report)
        elif report.reported_at and report.reported_at > since:
            new.append(report)
        elif report.state == State.NO_RESPONSE:
            silent.append(report)
        else:
            answered.append(report)
    return Week(new, silent, fixable, answered, closed)


def compose(version: str, week: Week, now: datetime) -> Document:
    """Return the digest of a release cycle."""
    sections = [
        ("New this week", week.new),
        ("No response for more than a week", week.silent),
        ("Fix posted, confirmed or queued", week.fixable),
        ("Answered, still open", week.answered),
        ("Fixed or closed this week", week.closed),
    ]
    sections = [(name, reports) for name, reports in sections if reports]
    year, number, _ = now.isocalendar()
    blocking = sum(bool(report.blocks) for report in week.open)
    count = f"{len(week.open)} open{f', {blocking} blocking' if blocking else ''}"
    rest = DocumentLink(f"all open regressions by urgency, on the {version} page", f"/{version}/?state=open")
    blocks = (
        Paragraph(f"Regressions in the {version} cycle, week ending {now:%Y-%m-%d}:"),
        Bullets([f"{name}: {len(reports)}" for name, reports in sections]),
        Bullets([rest]),
        *(block for name, reports in sections for block in _section(name, reports)),
    )
    return Document(f"{version} performance regressions, {year}-W{number:02}: {count}", "", blocks)


def _section(name: str, reports: Sequence[DigestLine]) -> Iterator[Block]:
    yield Heading(2, f"{name}: {len(reports)}")
    rows = []
    for report in reports[:MOST]:
        blocks = f"; blocks {report.blocks}" if report.blocks and report.state in OPEN else ""
        link = DocumentLink(report.title, reverse("report", args=[report.sha[:12]]))
        rows.append((link, report.metric, f"{report.status}{blocks}"))
    yield TableBlock(name, ("Report", "Metric", "Status"), rows, as_records=True)
    if len(reports) > MOST:
        yield Paragraph(f"And {len(reports) - MOST} more.")


# --- Queries ---

LOAD_MOST = 5000  # reports per cycle
_COLUMNS = (
    *("culprit__sha", "title", "given_title", "culprit__title", "metric", "state", "status"),
    *("reported_at", "closed_at", "blocks"),
)


def current() -> str:
    """Return the release in development; until its -rc1, the previous one. "" if no release is known."""
    newest = Release.objects.order_by("-number").values_list("version", flat=True).first()
    return ReleaseCalendar.load().current or newest or ""


def of(version: str, now: datetime) -> Week:
    """Return the week of a release cycle, most urgent reports first."""
    rows = Report.objects.filter(Q(merged_release=version) | Q(shift_left_release=version), verdict=Verdict.REGRESSION)
    rows = rows.filter(reported_at__isnull=False)  # authors hear of a report before the lists do
    values = rows.order_by("-urgency", "pk").values_list(*_COLUMNS)[:LOAD_MOST]
    return week(
        (
            DigestLine(sha, (given or title or own or sha[:10])[:200], metric, state, status, reported, closed, blocks)
            for sha, title, given, own, metric, state, status, reported, closed, blocks in values
        ),
        now,
    )
