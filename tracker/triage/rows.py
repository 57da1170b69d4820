"""A report as a row of a table: every cell as it is shown, so that a template has nothing to work out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tracker.models import Report
from tracker.status import CLOSED, State, Verdict

# The columns that a row is made of; nothing else is loaded.
COLUMNS = (
    *("pk", "revision", "verdict", "state", "status", "awaited", "assignee", "title", "given_title", "subsystem"),
    *("metric", "machine", "suite", "scenario", "base", "author", "change_pct", "noise_pct", "spark", "weight"),
    *("blocks", "lacks_fix", "urgency", "fix_title", "fix_sha", "fix_landing", "reported_at", "heard_at"),
    *("responded_at", "merged", "shifted", "culprit__sha", "culprit__title"),
)
TITLE = 300  # characters of a title; the report's page has it all
_STEP, _DOT = 3, 2  # of the little chart: a sample every three units, the first two from the edge
_MARKS = {Verdict.REGRESSION: "▼", Verdict.IMPROVEMENT: "▲", Verdict.UNKNOWN: "◆"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line. Times are lengths up to now; `good` and `bad` are paths of the little chart, `width` its size."""

    pk: int
    revision: int
    sha: str
    title: str
    subsystem: str
    verdict: str
    mark: str
    blocks: str
    metric: str
    change: str
    noise: str
    weight: str
    good: str
    bad: str
    width: int
    samples: str
    scenario: str
    suite: str
    machine: str
    base: str
    author: str
    age: str
    reported: str
    silence: str
    awaited: str
    assignee: str
    fix: str
    landing: str
    lacks_fix: bool
    state: str
    status: str
    closed: bool

    @property
    def url(self) -> str:
        return f"/report/{self.sha}/"

    @property
    def sha10(self) -> str:
        return self.sha[:10]

    @property
    def state_words(self) -> str:
        return self.state.replace("_", " ")


def row_of(report: Report, now: datetime) -> Row:
    """The row of a report of which COLUMNS were loaded."""
    good, bad, width = paths(report.spark)
    change = report.change_pct
    fixes = report.fix_title or report.fix_sha[:12]
    return Row(
        pk=report.pk,
        revision=report.revision,
        sha=report.culprit.sha,
        title=_title(report),
        subsystem=report.subsystem,
        verdict=report.verdict,
        mark=_MARKS[Verdict(report.verdict)],
        blocks=report.blocks,
        metric=report.metric,
        change="—" if change is None else f"{change:+.1f}%",
        noise=f"± {report.noise_pct:.0f}%" if report.noise_pct and report.noise_pct >= 2 else "",
        weight=f"{report.weight:.0f}×" if report.weight >= 0.5 else "",
        good=good,
        bad=bad,
        width=width,
        samples=_samples(report.spark),
        scenario=report.scenario,
        suite=report.suite,
        machine=report.machine,
        base=report.base,
        author=report.author,
        age=length(report.reported_at, now),
        reported=f"{report.reported_at:%Y-%m-%d}" if report.reported_at else "",
        silence=length(report.heard_at, now),
        awaited="" if report.awaited == "nobody" or report.state in CLOSED else report.awaited,
        assignee=report.assignee,
        fix=fixes[:TITLE],
        landing=report.fix_landing,
        lacks_fix=report.lacks_fix,
        state=report.state,
        status=report.status,
        closed=report.state in CLOSED and report.state != State.NO_ACTION,
    )


def _title(report: Report) -> str:
    """What is shown beside the sha: a title that was given, the commit's, or what the subject says behind the sha."""
    subject = report.title.rpartition(f"{report.culprit.sha10}: ")[2]
    return (report.given_title or report.culprit.title or subject)[:TITLE]


def length(moment: datetime | None, now: datetime) -> str:
    """How long ago, in two or three signs: "3d", "5w", "2y"; "" where it never was.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> length(now - timedelta(days=3), now), length(now - timedelta(days=40), now)
    ('3d', '5w')
    """
    if moment is None:
        return ""
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((2 * 365 * 86400, "y"), (21 * 86400, "w"), (86400, "d"), (3600, "h")):
        if seconds >= size:
            return f"{seconds // {'y': 365 * 86400, 'w': 7 * 86400}.get(unit, size)}{unit}"
    return f"{seconds // 60}m"


def paths(spark: str) -> tuple[str, str, int]:
    """The two sides of a little chart as SVG paths of dots, and its width; empty where there are no samples.

    >>> paths("17,18|3")
    ('M2 19h0M5 20h0', 'M11 5h0', 12)
    """
    if not spark:
        return "", "", 0
    old, new = (side.split(",") for side in spark.split("|"))
    good = "".join(f"M{_DOT + _STEP * place} {int(each) + _DOT}h0" for place, each in enumerate(old))
    start = _DOT + _STEP * (len(old) + 1)
    bad = "".join(f"M{start + _STEP * place} {int(each) + _DOT}h0" for place, each in enumerate(new))
    return good, bad, start + _STEP * len(new) - _DOT


def _samples(spark: str) -> str:
    """What the little chart shows, in words."""
    if not spark:
        return ""
    old, new = (side.count(",") + 1 for side in spark.split("|"))
    return f"{old} before, {new} after"
