"""Curves that came back: a known fix is confirmed; without one, a person is asked whether the change disappeared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.curves.builds import Build
from tracker.domain.curves.curve_reading import CurveReading, Undone, undone
from tracker.domain.events import OPEN, EventData, EventKind, Role, State, Verdict
from tracker.domain.statistics.change_points import AFTER
from tracker.domain.text.formats import number
from tracker.models import Curve, Finding, Report, Suggestion
from tracker.services.curves.known_noise import reported_change
from tracker.services.reports import event_log

RULE = "curve"  # of the suggestions made here
# While a fix is on its way, nobody is asked whether the change went by itself.
_ASKED = OPEN - {State.FIX_QUEUED}
_BESIDE = 2  # builds between a fix and the change that is found


@dataclass(frozen=True, slots=True)
class Recovery:
    """A report whose change is gone from its curve since `build`; `by_fix`: that is where its fix stands."""

    report: Report
    curve: Curve
    build: Build
    undone: Undone
    builds: int
    by_fix: bool

    @property
    def text(self) -> str:
        """The sentence that a person reads, with its numbers."""
        unit = f" {self.curve.metric.unit}" if self.curve.metric.unit else ""
        return (
            f"{self.curve.metric.name} is back at {number(self.undone.change.new)}{unit} in {self.builds} builds since "
            f"{self.build.name[:12]}; it was {number(self.undone.bad)} with the culprit"
        )

    @property
    def place(self) -> str:
        """A digest of where this was measured, which stays the same if the curve is made anew."""
        return hashlib.sha256("\n".join(self.curve.natural_key()).encode("utf-8", "replace")).hexdigest()[:12]


def recoveries(curve: Curve, reading: CurveReading, findings: Iterable[Finding]) -> list[Recovery]:
    """Return the reports with their headline on this curve whose change was undone."""
    names = [each.name for each in reading.history]
    found = []
    for finding in findings:
        report, measured = finding.report, reported_change(finding)
        if not finding.headline or report.verdict != Verdict.REGRESSION or measured is None:
            continue
        gone = undone(reading, measured)
        if gone is None:
            continue
        at = gone.change.index
        near = names[max(0, at - _BESIDE) : at + _BESIDE + 1]
        by_fix = bool(report.fix_sha) and any(name.startswith(report.fix_sha) for name in near)
        if (count := len(names) - at) >= AFTER:
            found.append(Recovery(report, curve, reading.history[at], gone, count, by_fix))
    return found


def record(found: Sequence[Recovery], now: datetime) -> None:
    """Store what these mean: the fix is confirmed; of a report that is open and has no fix, a suggestion."""
    confirmed = [each for each in found if each.by_fix]
    event_log.record(event_log.event_row(each.report, _confirmation(each, now), now, each.text) for each in confirmed)
    gone = [each for each in found if not each.by_fix and State(each.report.state) in _ASKED]
    Suggestion.objects.bulk_create([_suggestion(each, now) for each in gone], ignore_conflicts=True)


def _confirmation(each: Recovery, now: datetime) -> EventData:
    return EventData(
        key=f"{EventKind.FIX_CONFIRMED}:curve-{each.place}:{each.report.fix_sha}",
        kind=EventKind.FIX_CONFIRMED,
        occurred_at=now,
        commit=each.report.fix_sha,
        title=each.report.fix_title,
        result=f"curve {each.curve.pk}",
    )


def _suggestion(each: Recovery, now: datetime) -> Suggestion:
    return Suggestion(
        report=each.report,
        key=f"{EventKind.DISAPPEARED}:curve-{each.place}:{each.build.name[:40]}",
        kind=EventKind.DISAPPEARED,
        occurred_at=now,
        role=Role.MACHINE,
        commit=each.build.name[:64],
        quote=each.text,
        rule=RULE,
        curve=each.curve,
        why="its curve is back at the level before the culprit",
    )
