"""Look at curves again to which points were added: their changes, their noise, and what findings say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from tracker.domain.curves.builds import Build, builds_of
from tracker.domain.curves.noise import noise_of
from tracker.domain.statistics.change_points import ChangePoint, change_points
from tracker.models import Curve, CurveChange, Finding, Report
from tracker.services.curves import known_noise, recoveries
from tracker.services.curves.recoveries import Recovery
from tracker.services.curves.storage import recent
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

_OUTLINE = 60  # builds


def refresh_stale(now: datetime, most: int = 500) -> int:
    """Look at stale curves again, and store what is found. Returns how many there were."""
    with transaction.atomic():
        locks.take(Lock.CURVES)
        curves = list(Curve.objects.filter(stale=True).select_related("metric").order_by("pk")[:most])
        findings = known_noise.findings_on(curves)
        found: list[Recovery] = []
        for curve in curves:
            found += _refresh(curve, findings.get(curve.pk, ()), now)
        Curve.objects.bulk_update(curves, ["noise", "outline", "stale"], batch_size=100)
        known_noise.update_findings(curves, findings)
        recoveries.record(found, now)
    return len(curves)


def _refresh(curve: Curve, findings: Sequence[Finding], now: datetime) -> list[Recovery]:
    builds = builds_of(recent(curve))
    changes = change_points([each.level for each in builds])
    culprits = {each.report.culprit.sha for each in findings}
    reported = [place for place, build in enumerate(builds) if build.name in culprits]
    noise = noise_of(builds, [*(each.index for each in changes), *reported])
    curve.noise = asdict(noise) if noise else {}
    curve.outline = _outline(builds[-_OUTLINE:])
    curve.stale = False
    _store_changes(curve, builds, changes, now)
    return recoveries.recoveries(curve, builds, changes, findings)


def _store_changes(curve: Curve, builds: Sequence[Build], changes: Sequence[ChangePoint], now: datetime) -> None:
    """Store new changes; those within the range that are no longer found go, unless a report says them."""
    known = {each.build: each for each in curve.changes.all()}
    culprits = _reports_of([builds[each.index].name for each in changes])
    rows = [_change(curve, builds, each, culprits, now) for each in changes]
    found = {row.build for row in rows}
    seen = {build.name for build in builds}
    gone = [each.pk for each in known.values() if each.build in seen - found and each.report_id is None]
    CurveChange.objects.filter(pk__in=gone).delete()
    CurveChange.objects.bulk_create(row for row in rows if row.build not in known)
    for row in rows:
        if row.report_id and row.build in known and known[row.build].report_id is None:
            CurveChange.objects.filter(pk=known[row.build].pk).update(report=row.report_id)


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
