"""Curves in the database: points are added to their segments, and loaded by range."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from tracker.domain.curves.points import CurvePoint, merged, pack, unpack
from tracker.models import Curve, CurveSegment
from tracker.services.curves.places import in_known_places
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

CurveKey = tuple[int, int, int]  # ids of metric, scenario and machine
POINTS = 500  # per segment, about
RECENT = 1000  # points in which changes are looked for


@transaction.atomic
def add(points: Mapping[CurveKey, Sequence[CurvePoint]]) -> None:
    """Add points to their curves, which are made if they are new, in a constant number of queries.

    A point that is known already, by its time, build and source, is replaced. The curves are then stale.
    """
    points = {key: [each for each in new if each.samples] for key, new in points.items()}
    points = {key: new for key, new in points.items() if new}
    if not points:
        return
    locks.take(Lock.CURVES)
    points = in_known_places(points)
    curves = _found_or_made(points)
    touched = _touched(curves, points)
    packed = _unpacked([each.pk for segments in touched.values() for each in segments])
    fresh: list[CurveSegment] = []
    for key, new in points.items():
        curve = curves[key]
        old = [point for segment in touched[key] for point in packed[segment.pk]]
        every = merged(old, new)
        fresh += segments_of(curve, every)
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
    """Return the segments that the new points belong to: those that cover their times, else the one before or
    after if it has room.
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
        after = [each for each in segments if each.first_at > last][:1]
        touched[key] = covering or [each for each in (*before, *after) if each.points < POINTS][:1]
    return touched


def _unpacked(pks: Sequence[int]) -> dict[int, list[CurvePoint]]:
    rows = CurveSegment.objects.filter(pk__in=pks).values_list("pk", "packed")
    return {pk: unpack(bytes(packed)) for pk, packed in rows}


def segments_of(curve: Curve, points: Sequence[CurvePoint]) -> Iterator[CurveSegment]:
    """Cut points into segments of about POINTS."""
    pieces = max(1, round(len(points) / POINTS))
    size = math.ceil(len(points) / pieces)
    for start in range(0, len(points), size):
        part = points[start : start + size]
        yield CurveSegment(curve=curve, first_at=part[0].at, last_at=part[-1].at, points=len(part), packed=pack(part))


def load(curve: Curve, since: datetime | None = None, until: datetime | None = None) -> list[CurvePoint]:
    """Return the points of a curve in order, of a range of time if one is given: from `since` to before `until`."""
    segments = curve.segments.order_by("first_at", "pk")
    if since:
        segments = segments.filter(last_at__gte=since)
    if until:
        segments = segments.filter(first_at__lt=until)
    points = (point for packed in segments.values_list("packed", flat=True) for point in unpack(bytes(packed)))
    return [each for each in points if (not since or each.at >= since) and (not until or each.at < until)]


def recent(curve: Curve) -> list[CurvePoint]:
    """Return the newest points of a curve, RECENT or a segment more."""
    points: list[CurvePoint] = []
    for packed in curve.segments.order_by("-last_at", "-pk").values_list("packed", flat=True).iterator(chunk_size=4):
        points = [*unpack(bytes(packed)), *points]
        if len(points) >= RECENT:
            break
    return points


def recent_of(curves: Sequence[Curve]) -> dict[int, list[CurvePoint]]:
    """Return the newest points of many curves, by the curve's key: the short ones with a query for a hundred."""
    short = [each.pk for each in curves if each.points <= RECENT]
    found: dict[int, list[CurvePoint]] = {pk: [] for pk in short}
    for start in range(0, len(short), 100):
        segments = CurveSegment.objects.filter(curve__in=short[start : start + 100]).order_by("last_at", "pk")
        for curve, packed in segments.values_list("curve_id", "packed"):
            found[curve] += unpack(bytes(packed))
    return found | {each.pk: recent(each) for each in curves if each.points > RECENT}
