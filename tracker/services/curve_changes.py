"""Look at curves again to which points were added: their changes, their noise, and what findings say of it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from tracker.domain.curves.builds import Build, builds_of
from tracker.domain.curves.curve_reading import CurveReading, read_curve
from tracker.domain.curves.points import CurvePoint
from tracker.domain.statistics.change_points import AFTER, LEAST_BEFORE, ChangePoint
from tracker.models import Curve, CurveChange, Finding, Report
from tracker.services.curves import known_noise, recoveries
from tracker.services.curves.storage import recent_of
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

_OUTLINE = 60  # builds
log = logging.getLogger(__name__)


def refresh_stale(now: datetime, most: int = 500) -> int:
    """Look at stale curves again, and store what is found, in a constant number of queries. Returns how many."""
    with transaction.atomic():
        locks.take(Lock.CURVES)
        related = Curve.objects.filter(stale=True).select_related("metric", "scenario", "machine")
        curves = list(related.order_by("pk")[:most])
        if not curves:
            return 0
        findings = known_noise.findings_on(curves)
        points = recent_of(curves)
        readings = {each.pk: _look_at(each, points[each.pk], findings.get(each.pk, ())) for each in curves}
        looked = [(curve, reading) for curve in curves if (reading := readings[curve.pk])]
        _store_changes(looked, now)
        Curve.objects.bulk_update(curves, ["noise", "outline", "stale"], batch_size=100)
        known_noise.update_findings(curves, findings)
        found = [recoveries.recoveries(curve, reading, findings.get(curve.pk, ())) for curve, reading in looked]
        recoveries.record([each for of_curve in found for each in of_curve], now)
    return len(curves)


def _look_at(curve: Curve, points: Sequence[CurvePoint], findings: Sequence[Finding]) -> CurveReading | None:
    """Read one curve. What it can't be read for is logged: the others are looked at all the same."""
    curve.stale = False
    try:
        builds = builds_of(points)
        reading = read_curve(builds, known_noise.reported(findings))
    except (ArithmeticError, ValueError) as error:
        log.warning("curve %s can't be read: %s", curve.pk, error)
        curve.noise, curve.outline = {}, ""
        return None
    curve.noise = asdict(reading.noise) if reading.noise else {}
    curve.outline = _outline(builds[-_OUTLINE:])
    return reading


def _store_changes(looked: Sequence[tuple[Curve, CurveReading]], now: datetime) -> None:
    """Store new changes. Those that are no longer found go, unless a report says them, or they stand where none can be
    found, at the beginning of the builds that are looked at.
    """
    known: defaultdict[int, dict[str, CurveChange]] = defaultdict(dict)
    for each in CurveChange.objects.filter(curve__in=[curve.pk for curve, _ in looked]):
        known[each.curve_id][each.build] = each
    culprits = _reports_of([reading.history[each.index].name for _, reading in looked for each in reading.changes])
    new: list[CurveChange] = []
    gone: list[int] = []
    moved: list[CurveChange] = []
    for curve, reading in looked:
        before = known[curve.pk]
        rows = [_change(curve, reading.history, each, culprits, now) for each in reading.changes]
        found = {row.build for row in rows}
        seen = {build.name for build in reading.history[LEAST_BEFORE + AFTER :]}
        gone += [each.pk for each in before.values() if each.build in seen - found and each.report_id is None]
        new += [row for row in rows if row.build not in before]
        moved += [
            before[row.build] for row in rows if row.build in before and _brought_up_to_date(before[row.build], row)
        ]
    CurveChange.objects.filter(pk__in=gone).delete()
    CurveChange.objects.bulk_create(new, batch_size=200)
    CurveChange.objects.bulk_update(moved, ["at", "before", "report"], batch_size=200)


def _brought_up_to_date(known: CurveChange, found: CurveChange) -> bool:
    """Give a known change its report, and its place if builds stand in another order now; whether that changed it."""
    now = (found.at, found.before, known.report_id or found.report_id)
    if (known.at, known.before, known.report_id) == now:
        return False
    known.at, known.before, known.report_id = now
    return True


def _change(
    curve: Curve, builds: Sequence[Build], change: ChangePoint, culprits: Mapping[str, int], now: datetime
) -> CurveChange:
    build, direction = builds[change.index], curve.metric.direction
    rises = change.new > change.old
    return CurveChange(
        curve=curve,
        at=build.at,
        before=builds[change.index - 1].name,
        build=build.name,
        old_level=change.old,
        new_level=change.new,
        change_pct_raw=change.change_pct,
        noise_pct=100 * change.noise / abs(change.old) if change.old else None,
        is_regression=None if direction not in ("higher", "lower") else rises == (direction == "lower"),
        found_at=now,
        report_id=culprits.get(build.name),
    )


def _reports_of(builds: Sequence[str]) -> dict[str, int]:
    """Return the reports whose culprit is one of these builds."""
    return dict(Report.objects.filter(culprit__sha__in=builds).values_list("culprit__sha", "pk"))


def _outline(builds: Sequence[Build]) -> str:
    """Return the heights of the levels from 0 to 100, "12,14,…"; "" for fewer than two."""
    levels = [each.level for each in builds]
    if len(levels) < 2:
        return ""
    low, high = min(levels), max(levels)
    reach = max(high - low, 0.05 * abs(high), 1e-300)  # a flat curve is drawn flat
    return ",".join(str(round(100 * (each - low) / reach)) for each in levels)
