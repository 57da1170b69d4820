"""Curves looked at again: their changes, their noise, what findings say of it, and recoveries.

`refresh_stale` looks at the curves to which points were added, in a constant number of queries. A change that is no
longer found goes, unless a report says it, or it stands where none can be found: at the beginning of the builds that
are looked at. Findings keep their change in multiples of the noise; what moves by less than _MOVED stays, so that no
mail is composed again. Intake asks for the noise of many places at once, and the mail and the page of a report for
the past of one.

Where a curve came back, a known fix is confirmed; without one, a person is asked whether the change disappeared.
Reports are locked in the order of their keys, as everybody does who writes findings and reports.
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from tracker.domain.curves import (
    AFTER,
    LEAST_BEFORE,
    LEAST_BUILDS,
    Build,
    ChangePoint,
    CurveNoise,
    CurvePoint,
    CurveReading,
    ReportedChange,
    Shift,
    StableHistory,
    Undone,
    builds_of,
    history_before,
    read_curve,
    shifts,
    undone,
)
from tracker.domain.events import OPEN, EventData, EventKind, Role, State, Verdict
from tracker.domain.statistics import effect
from tracker.domain.text import number
from tracker.models import BisectResult, Curve, CurveChange, Event, Finding, Report, Suggestion
from tracker.services import corrections, database, event_log, report_summary
from tracker.services.curves import CurveKey, around, recent, recent_of
from tracker.services.database import Lock

log = logging.getLogger(__name__)

# --- Noise and findings ---

_MOVED = 0.05  # an effect that moves by less is left as it is, and no mail is composed again


def noise_at(places: Collection[CurveKey]) -> dict[CurveKey, CurveNoise]:
    """Return the known noise of places, in one query; a place without a history has none."""
    rows = Curve.objects.filter(around(places)).exclude(noise={})
    values = rows.values_list("metric_id", "scenario_id", "machine_id", "noise")
    pairs = ((key, noise) for *key, noise in values.iterator(chunk_size=1000))
    return {place: CurveNoise(**noise) for key, noise in pairs if (place := tuple(key)) in places}  # type: ignore[misc]


def findings_on(curves: Sequence[Curve]) -> Mapping[int, list[Finding]]:
    """Return the findings that were measured where these curves are, by the curve's key.

    Their reports are locked, in the order of their keys, as everybody does who writes findings and reports.
    """
    places = {(curve.metric_id, curve.scenario_id, curve.machine_id): curve.pk for curve in curves}
    here = Curve.objects.filter(
        pk__in=list(places.values()),
        metric=OuterRef("metric"),
        scenario=OuterRef("scenario"),
        machine=OuterRef("machine"),
    )
    rows = Finding.objects.filter(around(places), Exists(here)).defer("old_samples", "new_samples")
    findings = list(rows.order_by("pk"))
    locked = Report.objects.select_for_update(of=("self",)).select_related("culprit").order_by("pk")
    reports = {report.pk: report for report in locked.filter(pk__in={finding.report_id for finding in findings})}
    by_curve: defaultdict[int, list[Finding]] = defaultdict(list)
    for row in findings:
        row.report = reports[row.report_id]
        by_curve[places[row.metric_id, row.scenario_id, row.machine_id]].append(row)
    return by_curve


def reported(findings: Iterable[Finding]) -> list[ReportedChange]:
    """Return the changes that these findings, with their reports and culprits, measured."""
    return [change for finding in findings if (change := reported_change(finding))]


def reported_change(finding: Finding) -> ReportedChange | None:
    """Return the change that a finding measured; None without two different means."""
    if finding.old_mean is None or finding.new_mean is None or finding.old_mean == finding.new_mean:
        return None
    culprit = finding.report.culprit
    source = f"result {finding.result_id}" if finding.result_id else f"report {culprit.sha10}"
    return ReportedChange(culprit.sha, finding.old_mean, finding.new_mean, source)


def update_findings(curves: Sequence[Curve], findings: Mapping[int, Sequence[Finding]]) -> None:
    """Store by how many times the noise known now these findings changed. Their unsent mails are composed again."""
    moved: list[Finding] = []
    for curve in curves:
        noise = CurveNoise(**curve.noise) if curve.noise else None
        for finding in findings.get(curve.pk, ()):
            before, now = finding.effect, effect(finding.change_pct_raw, noise.pct if noise else None)
            finding.effect, finding.noise_runs = now, noise.runs if noise and now is not None else None
            if (before is not now) if before is None or now is None else abs(now - before) > _MOVED * before:
                moved.append(finding)
    Finding.objects.bulk_update(moved, ["effect", "noise_runs"], batch_size=200)
    heads = {row.report_id for row in moved if row.headline}
    report_summary.refresh(heads)
    corrections.outdate(heads - corrections.sent_reports(heads))


# --- The past of a place ---

_REPORTS = 500  # on one curve


@dataclass(frozen=True, slots=True)
class CurvePast:
    """The curve that a finding lies on, and how stable it was before; None where too little was measured."""

    curve: Curve
    history: StableHistory | None


def past_of(finding: Finding, commit: str) -> CurvePast | None:
    """Return the past of a finding before a commit, in four queries at most; None if there is no curve."""
    where = {"metric": finding.metric_id, "scenario": finding.scenario_id, "machine": finding.machine_id}
    curve = Curve.objects.filter(**where).first()
    if curve is None or curve.points < LEAST_BUILDS:
        return CurvePast(curve, None) if curve else None
    findings = Finding.objects.filter(**where).select_related("report__culprit").defer("old_samples", "new_samples")
    reading = read_curve(builds_of(recent(curve)), reported(findings.order_by("-pk")[:_REPORTS]))
    measured_at = None
    if finding.result_id and reading.place_of(commit) is None:  # its result is not on the curve yet
        result = BisectResult.objects.filter(pk=finding.result_id)
        measured_at = result.values_list("created_at", flat=True).first()
    return CurvePast(curve, history_before(reading, commit, measured_at))


# --- Recoveries ---

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
    names = [build.name for build in reading.history]
    recovered = []
    for finding in findings:
        report, measured = finding.report, reported_change(finding)
        if not finding.headline or report.verdict != Verdict.REGRESSION or measured is None:
            continue
        gone = undone(reading, measured)
        if gone is None:
            continue
        at = gone.change.index
        count = len(names) - at
        if count < AFTER:
            continue
        near = names[max(0, at - _BESIDE) : at + _BESIDE + 1]
        by_fix = bool(report.fix_sha) and any(name.startswith(report.fix_sha) for name in near)
        recovered.append(Recovery(report, curve, reading.history[at], gone, count, by_fix))
    return recovered


def record(recoveries: Sequence[Recovery], now: datetime) -> None:
    """Store what these mean: the fix is confirmed; of a report that is open and has no fix, a suggestion."""
    confirmed: list[Event] = []
    gone: list[Suggestion] = []
    for recovery in recoveries:
        report, build = recovery.report, recovery.build.name
        if recovery.by_fix:
            event = EventData(
                key=f"{EventKind.FIX_CONFIRMED}:curve-{recovery.place}:{report.fix_sha}",
                kind=EventKind.FIX_CONFIRMED,
                occurred_at=now,
                commit=report.fix_sha,
                title=report.fix_title,
                result=f"curve {recovery.curve.pk}",
            )
            confirmed.append(event_log.event_row(report, event, now, recovery.text))
        elif State(report.state) in _ASKED:
            suggestion = Suggestion(
                report=report,
                key=f"{EventKind.DISAPPEARED}:curve-{recovery.place}:{build[:40]}",
                kind=EventKind.DISAPPEARED,
                occurred_at=now,
                role=Role.MACHINE,
                commit=build[:64],
                quote=recovery.text,
                rule=RULE,
                curve=recovery.curve,
                why="its curve is back at the level before the culprit",
            )
            gone.append(suggestion)
    event_log.record(confirmed)
    Suggestion.objects.bulk_create(gone, ignore_conflicts=True)


# --- Looking again ---

_OUTLINE = 60  # builds


def refresh_stale(now: datetime, most: int = 500) -> int:
    """Look at stale curves again, and store what is found, in a constant number of queries. Returns how many."""
    with transaction.atomic():
        database.take(Lock.CURVES)
        related = Curve.objects.filter(stale=True).select_related("metric", "scenario", "machine")
        curves = list(related.order_by("pk")[:most])
        if not curves:
            return 0
        findings = findings_on(curves)
        points = recent_of(curves)
        readings = {row.pk: _look_at(row, points[row.pk], findings.get(row.pk, ())) for row in curves}
        looked = [(curve, reading) for curve in curves if (reading := readings[curve.pk])]
        _store_changes(looked, now)
        Curve.objects.bulk_update(curves, ["noise", "outline", "stale"], batch_size=100)
        update_findings(curves, findings)
        per_curve = [recoveries(curve, reading, findings.get(curve.pk, ())) for curve, reading in looked]
        record([recovery for of_curve in per_curve for recovery in of_curve], now)
    return len(curves)


def _look_at(curve: Curve, points: Sequence[CurvePoint], findings: Sequence[Finding]) -> CurveReading | None:
    """Read one curve. What it can't be read for is logged: the others are looked at all the same."""
    curve.stale, curve.outline = False, ""
    try:
        builds = builds_of(points)
        reading = read_curve(builds, reported(findings))
    except (ArithmeticError, ValueError) as error:
        log.warning("curve %s can't be read: %s", curve.pk, error)
        curve.noise = {}
        return None
    curve.noise = asdict(reading.noise) if reading.noise else {}
    levels = [build.level for build in builds[-_OUTLINE:]]
    if len(levels) > 1:  # their heights from 0 to 100, "12,14,…"
        low, high = min(levels), max(levels)
        reach = max(high - low, 0.05 * abs(high), 1e-300)  # a flat curve is drawn flat
        curve.outline = ",".join(str(round(100 * (level - low) / reach)) for level in levels)
    return reading


def _store_changes(looked: Sequence[tuple[Curve, CurveReading]], now: datetime) -> None:
    """Store new changes. Those that are no longer found go, unless a report says them, or they stand where none can be
    found, at the beginning of the builds that are looked at.
    """
    by_curve: defaultdict[int, dict[str, CurveChange]] = defaultdict(dict)
    for change in CurveChange.objects.filter(curve__in=[curve.pk for curve, _ in looked]):
        by_curve[change.curve_id][change.build] = change
    names = [reading.history[point.index].name for _, reading in looked for point in reading.changes]
    culprits = dict(Report.objects.filter(culprit__sha__in=names).values_list("culprit__sha", "pk"))
    new: list[CurveChange] = []
    gone: list[int] = []
    moved: list[CurveChange] = []
    for curve, reading in looked:
        before = by_curve[curve.pk]
        moves = shifts([build.level for build in reading.history], reading.changes)
        pairs = zip(reading.changes, moves, strict=True)
        rows = [_change(curve, reading.history, point, shift, culprits, now) for point, shift in pairs]
        builds = {row.build for row in rows}
        seen = {build.name for build in reading.history[LEAST_BEFORE + AFTER :]}
        gone += [change.pk for change in before.values() if change.build in seen - builds and change.report_id is None]
        for row in rows:
            old = before.get(row.build)
            if old is None:
                new.append(row)
                continue
            # A known change gets its report, the levels of all builds so far, and its place if these stand in another
            # order now
            row.pk, row.found_at, row.report_id = old.pk, old.found_at, old.report_id or row.report_id
            if any(getattr(row, name) != getattr(old, name) for name in _KNOWN_BETTER):
                moved.append(row)
    CurveChange.objects.filter(pk__in=gone).delete()
    CurveChange.objects.bulk_create(new, batch_size=200)
    CurveChange.objects.bulk_update(moved, _KNOWN_BETTER, batch_size=200)


# Of a change that was found before, with more builds, or with a direction that is now known
_KNOWN_BETTER = (
    "at", "before", "old_level", "new_level", "change_pct_raw", "low_pct", "high_pct", "noise_pct", "is_regression",
    "report_id",
)  # fmt: skip


def _change(
    curve: Curve,
    builds: Sequence[Build],
    change: ChangePoint,
    shift: Shift,
    culprits: Mapping[str, int],
    now: datetime,
) -> CurveChange:
    build, direction = builds[change.index], curve.metric.direction
    rises = change.new > change.old
    low, high = shift.interval or (None, None)
    return CurveChange(
        curve=curve,
        at=build.at,
        before=builds[change.index - 1].name,
        build=build.name,
        old_level=shift.old,
        new_level=shift.new,
        change_pct_raw=shift.change_pct,
        low_pct=low,
        high_pct=high,
        noise_pct=100 * change.noise / abs(change.old) if change.old else None,
        is_regression=None if direction not in ("higher", "lower") else rises == (direction == "lower"),
        found_at=now,
        report_id=culprits.get(build.name),
    )
