"""A report as a table row, with every cell formatted so that templates compute nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from tracker.charts.sparkline import described, paths
from tracker.domain.events import CLOSED, Verdict
from tracker.domain.text import formats

# The columns that a row needs; no others are loaded.
COLUMNS = (
    *("pk", "revision", "verdict", "state", "status", "awaited", "assignee", "title", "given_title", "subsystem"),
    *("metric", "machine", "suite", "scenario", "base", "author", "change", "noise_pct", "spark", "effect", "weight"),
    *("blocks", "lacks_fix", "urgency", "fix_title", "fix_sha", "fix_landing", "reported_at", "last_human_reply_at"),
    *("culprit__sha", "culprit__title"),
)
TITLE = 300  # characters of a title; the report's page shows all of it
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
    effect: str
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
    was: str = ""  # the status before the change that this row answers
    batch: str = ""  # with which that change can be undone

    @property
    def undo_url(self) -> str:
        return reverse("undo-change")

    @property
    def url(self) -> str:
        return reverse("report", args=[self.sha])

    @property
    def sha10(self) -> str:
        return self.sha[:10]

    @property
    def state_label(self) -> str:
        return self.state.replace("_", " ")


def row_of(values: Mapping[str, Any], now: datetime) -> TriageRow:
    """Return the row of a report from its COLUMNS."""
    good, bad, width = paths(values["spark"])
    change, noise, effect = values["change"], values["noise_pct"], values["effect"]
    closed = values["state"] in CLOSED
    return TriageRow(
        pk=values["pk"],
        revision=values["revision"],
        sha=values["culprit__sha"],
        title=_title(values).removeprefix(f"{values['subsystem']}: "),
        subsystem=values["subsystem"],
        verdict=values["verdict"],
        mark=_MARKS[values["verdict"]],
        blocks="" if closed else values["blocks"],
        metric=values["metric"],
        change=formats.signed_pct(change),
        noise=f"± {noise:.0f}%" if noise and noise >= 2 else "",
        effect=f"{formats.multiple(effect)} noise" if effect is not None else "",
        good=good,
        bad=bad,
        width=width,
        samples=described(values["spark"]),
        scenario=values["scenario"],
        suite=values["suite"],
        machine=values["machine"],
        base=values["base"],
        author=values["author"],
        age=formats.age(values["reported_at"], now),
        reported=f"{values['reported_at']:%Y-%m-%d}" if values["reported_at"] else "",
        silence=formats.age(values["last_human_reply_at"], now),
        awaited="" if values["awaited"] == "nobody" or closed else values["awaited"],
        assignee=values["assignee"],
        fix=(values["fix_title"] or values["fix_sha"][:12])[:TITLE],
        landing=values["fix_landing"],
        lacks_fix=values["lacks_fix"],
        state=values["state"],
        status=values["status"],
    )


def _title(values: Mapping[str, Any]) -> str:
    """Return the title to show: the given one, the commit's, or the end of the mail's subject."""
    title: str = values["given_title"] or values["culprit__title"] or values["title"].rpartition(": ")[2]
    return title[:TITLE]
