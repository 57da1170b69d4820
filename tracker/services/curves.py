"""Curves in the database: points are added to their segments, loaded by range, and looked at for changes and noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from tracker.domain.curves.builds import Build, builds_of
from tracker.domain.curves.noise import noise_of
from tracker.domain.curves.points import CurvePoint, merged, pack, unpack
from tracker.domain.statistics.change_points import ChangePoint, change_points
from tracker.models import Curve, CurveChange, CurveSegment, Report
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

CurveKey = tuple[int, int, int]  # ids of metric, scenario and machine
POINTS = 500  # per segment, about
RECENT = 1000  # builds in which changes are looked for
_OUTLINE = 60  # builds


@transaction.atomic
def add(points: Mapping[CurveKey, Sequence[CurvePoint]]) -> None:
    """Add points to their curves, which are made if they are new, in a constant number of queries.

    A point that is known already, by its time, build and source, is replaced. The curves are stale until `refresh`.
    """
    points = {key: [each for each in new if each.samples] for key, new in points.items()}
    points = {key: new for key, new in points.items() if new}
    if not points:
        return
    locks.take(Lock.CURVES)
    curves = _found_or_made(points)
    touched = _touched(curves, points)
    packed = _unpacked([each.pk for segments in touched.values() for each in segments])
    fresh: list[CurveSegment] = []
    for key, new in points.items():
        curve = curves[key]
        old = [point for segment in touched[key] for point in packed[segment.pk]]
        every = merged(old, new)
        fresh += _segments(curve, every)
        curve.stale = True
        curve.points += len(every) - len(old)
        curve.samples += sum(len(each.samples) for each in every) - sum(len(each.samples) for each in old)
        curve.first_at = min(every[0].at, curve.first_at or every[0].at)
        curve.last_at = max(every[-1].at, curve.last_at or every[-1].at)
    CurveSegment.objects.filter(pk__in=list(packed)).delete()
    CurveSegment.objects.bulk_create(fresh, batch_size=200)
    columns = ["points", "samples", "first_at", "last_at", "stale"]
    Curve.objects.bulk_update(curves.values(), columns, batch_size=100)


def _found_or_made(points: Mapping[CurveKey, Sequence[CurvePoint]]) -> dict[CurveKey, Curve]:
    metrics, scenarios, machines = (sorted({key[place] for key in points}) for place in range(3))
    known = Curve.objects.filter(metric__in=metrics, scenario__in=scenarios, machine__in=machines)

    def found() -> dict[CurveKey, Curve]:
        return {(each.metric_id, each.scenario_id, each.machine_id): each for each in known.all()}

    curves = found()
    if missing := sorted(points.keys() - curves.keys()):
        Curve.objects.bulk_create(Curve(metric_id=a, scenario_id=b, machine_id=c) for a, b, c in missing)
        curves = found()
    return {key: curves[key] for key in points}


def _touched(
    curves: Mapping[CurveKey, Curve], points: Mapping[CurveKey, Sequence[CurvePoint]]
) -> dict[CurveKey, list[CurveSegment]]:
    """Return the segments that the new points belong to: those that cover their times, else the one before if it has
    room.
    """
    of_curve: dict[int, list[CurveSegment]] = defaultdict(list)
    every = CurveSegment.objects.filter(curve__in=list(curves.values())).defer("packed")
    for segment in every.order_by("first_at", "pk"):
        of_curve[segment.curve_id].append(segment)
    touched = {}
    for key, new in points.items():
        first, last = min(each.at for each in new), max(each.at for each in new)
        segments = of_curve[curves[key].pk]
        covering = [each for each in segments if each.first_at <= last and each.last_at >= first]
        before = [each for each in segments if each.last_at < first][-1:]
        touched[key] = covering or [each for each in before if each.points < POINTS]
    return touched


def _unpacked(pks: Sequence[int]) -> dict[int, list[CurvePoint]]:
    rows = CurveSegment.objects.filter(pk__in=pks).values_list("pk", "packed")
    return {pk: unpack(bytes(packed)) for pk, packed in rows}


def _segments(curve: Curve, points: Sequence[CurvePoint]) -> Iterator[CurveSegment]:
    """Cut points into segments of about POINTS."""
    pieces = max(1, round(len(points) / POINTS))
    size = math.ceil(len(points) / pieces)
    for start in range(0, len(points), size):
        part = points[start : start + size]
        yield CurveSegment(curve=curve, first_at=part[0].at, last_at=part[-1].at, points=len(part), packed=pack(part))


def load(curve: Curve, since: datetime | None = None, until: datetime | None = None) -> list[CurvePoint]:
    """Return the points of a curve in order, of a range of time if one is given."""
    segments = curve.segments.order_by("first_at", "pk")
    if since:
        segments = segments.filter(last_at__gte=since)
    if until:
        segments = segments.filter(first_at__lte=until)
    points = (point for packed in segments.values_list("packed", flat=True) for point in unpack(bytes(packed)))
    return [each for each in points if (not since or each.at >= since) and (not until or each.at <= until)]


def refresh_stale(now: datetime, most: int = 500) -> int:
    """Look at curves again to which points were added: their changes, noise and outline. Returns how many."""
    with transaction.atomic():
        locks.take(Lock.CURVES)
        curves = list(Curve.objects.filter(stale=True).select_related("metric").order_by("pk")[:most])
        for curve in curves:
            _refresh(curve, now)
        Curve.objects.bulk_update(curves, ["noise", "outline", "stale"], batch_size=100)
    return len(curves)


def _refresh(curve: Curve, now: datetime) -> None:
    builds = builds_of(_recent(curve))
    changes = change_points([each.level for each in builds])
    noise = noise_of(builds, changes)
    curve.noise = asdict(noise) if noise else {}
    curve.outline = _outline(builds[-_OUTLINE:])
    curve.stale = False
    _store_changes(curve, builds, changes, now)


def _recent(curve: Curve) -> list[CurvePoint]:
    """Return the newest points of a curve, RECENT or a segment more."""
    points: list[CurvePoint] = []
    for packed in curve.segments.order_by("-last_at", "-pk").values_list("packed", flat=True)[: RECENT // POINTS + 1]:
        points = [*unpack(bytes(packed)), *points]
        if len(points) >= RECENT:
            break
    return points


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
