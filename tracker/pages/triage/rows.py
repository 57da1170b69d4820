"""A report as a table row, with every cell formatted so that templates compute nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tracker.domain.events import CLOSED, Verdict

# The columns that a row needs; no others are loaded.
COLUMNS = (
    *("pk", "revision", "verdict", "state", "status", "awaited", "assignee", "title", "given_title", "subsystem"),
    *("metric", "machine", "suite", "scenario", "base", "author", "change_pct", "noise_pct", "spark", "weight"),
    *("blocks", "lacks_fix", "urgency", "fix_title", "fix_sha", "fix_landing", "reported_at", "last_human_reply_at"),
    *("culprit__sha", "culprit__title"),
)
TITLE = 300  # characters of a title; the report's page shows all of it
_STEP, _DOT = 3, 2  # of the sparkline: one sample every 3 units, the first 2 from the edge
_MARKS: Mapping[str, str] = {Verdict.REGRESSION: "▼", Verdict.IMPROVEMENT: "▲", Verdict.UNKNOWN: "◆"}


@dataclass(frozen=True, slots=True)
class TriageRow:
    """One row. `age` and `silence` are durations until now; `good` and `bad` are the paths of a sparkline."""

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

    @property
    def url(self) -> str:
        return f"/report/{self.sha}/"

    @property
    def sha10(self) -> str:
        return self.sha[:10]

    @property
    def state_words(self) -> str:
        return self.state.replace("_", " ")


def row_of(told: Mapping[str, Any], now: datetime) -> TriageRow:
    """Return the row of a report from its COLUMNS."""
    good, bad, width = paths(told["spark"])
    change, noise, weight = told["change_pct"], told["noise_pct"], told["weight"]
    closed = told["state"] in CLOSED
    return TriageRow(
        pk=told["pk"],
        revision=told["revision"],
        sha=told["culprit__sha"],
        title=_title(told).removeprefix(f"{told['subsystem']}: "),
        subsystem=told["subsystem"],
        verdict=told["verdict"],
        mark=_MARKS[told["verdict"]],
        blocks="" if closed else told["blocks"],
        metric=told["metric"],
        change="—" if change is None else f"{change:+.1f}%",
        noise=f"± {noise:.0f}%" if noise and noise >= 2 else "",
        weight=f"{weight:.0f}×" if weight >= 0.5 else "",
        good=good,
        bad=bad,
        width=width,
        samples=_samples(told["spark"]),
        scenario=told["scenario"],
        suite=told["suite"],
        machine=told["machine"],
        base=told["base"],
        author=told["author"],
        age=length(told["reported_at"], now),
        reported=f"{told['reported_at']:%Y-%m-%d}" if told["reported_at"] else "",
        silence=length(told["last_human_reply_at"], now),
        awaited="" if told["awaited"] == "nobody" or closed else told["awaited"],
        assignee=told["assignee"],
        fix=(told["fix_title"] or told["fix_sha"][:12])[:TITLE],
        landing=told["fix_landing"],
        lacks_fix=told["lacks_fix"],
        state=told["state"],
        status=told["status"],
    )


def _title(told: Mapping[str, Any]) -> str:
    """Return the title to show: the given one, the commit's, or the end of the mail's subject."""
    title: str = told["given_title"] or told["culprit__title"] or told["title"].rpartition(": ")[2]
    return title[:TITLE]


def length(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, abbreviated: "3d", "5w", "2y"; "" for None.

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
    """Return the two sides of a sparkline as SVG paths of dots, and its width; empty without samples.

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
    """Return the sparkline's text alternative."""
    if not spark:
        return ""
    old, new = (side.count(",") + 1 for side in spark.split("|"))
    return f"{old} before, {new} after"
