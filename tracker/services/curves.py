"""Curves in the database: points in segments, by range, at their builds' places in the mainline.

A curve is of one metric, scenario and machine. Its points are packed into segments of about POINTS, and new ones go
to the segments that cover their times; a point that is known already, by its time, build and source, is replaced. A
curve whose points have changed is stale (tracker/services/curve_changes.py looks at it again).

Builds stand at the dates that came with them, until their places in the mainline are known; then their points are
moved. The places are stored first: points that arrive meanwhile are placed correctly, and what is not moved now is
moved by the next call.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from tracker.domain import versions
from tracker.domain.curves import CurvePoint, merged, pack, to_the_millisecond, unpack
from tracker.models import Curve, CurveBuild, CurveSegment
from tracker.services import database
from tracker.services.database import Lock, in_parts

# --- Places of builds ---

_SHA = re.compile(r"[0-9a-f]{40}\Z")
_MOST = 5000  # builds that are looked for in one walk, the newest
_AGAIN = timedelta(days=180)  # what was not merged so long after its measurement is not looked for any more
CurveKey = tuple[int, int, int]  # ids of metric, scenario and machine
Points = Mapping[CurveKey, Sequence[CurvePoint]]


def name_of(build: str) -> str:
    """Return the commit or version that a build was made of, without its setup; "" if it is neither."""
    name = build.partition("/")[0]
    return name if _SHA.match(name) or versions.parse(name) else ""


def in_known_places(points: Points) -> dict[CurveKey, list[CurvePoint]]:
    """Return points at the places of their builds as far as those are known; the others are noted, to be looked for."""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for point in (point for new in points.values() for point in new):
        if name := name_of(point.build):
            first, last = spans.get(name, (point.at, point.at))
            spans[name] = min(first, point.at), max(last, point.at)
    by_name = {row.name: row for part in in_parts(sorted(spans)) for row in CurveBuild.objects.filter(name__in=part)}
    rows: list[CurveBuild] = []
    for name, (first, last) in spans.items():
        row = by_name.get(name)
        if row is None:
            rows.append(CurveBuild(name=name, first_at=first, last_at=last))
        elif not row.moved and (first < row.first_at or last > row.last_at):
            row.first_at, row.last_at = min(first, row.first_at), max(last, row.last_at)
            rows.append(row)
    if rows:
        columns = ["first_at", "last_at"]
        CurveBuild.objects.bulk_create(rows, 500, update_conflicts=True, update_fields=columns, unique_fields=["name"])
    places = {row.name: row.place for row in by_name.values() if row.place}
    return {key: [placed(point, places) for point in new] for key, new in points.items()}


def placed(point: CurvePoint, places: Mapping[str, datetime]) -> CurvePoint:
    place = places.get(name_of(point.build)) if places else None
    return to_the_millisecond(point._replace(at=place) if place else point)


def sought(walked_at: datetime | None, now: datetime) -> list[str]:
    """Return the builds whose place is not known, and which the mainline may hold, as it was last changed."""
    rows = CurveBuild.objects.filter(moved=False, place=None)
    again = Q(sought_at__lt=walked_at, last_at__gt=now - _AGAIN) if walked_at else Q()
    rows = rows.filter(Q(sought_at=None) | again)
    return list(rows.order_by("-last_at").values_list("name", flat=True)[:_MOST])


# --- Points in segments ---

POINTS = 500  # per segment, about
RECENT = 1000  # points in which changes are looked for
_NUMBERS = ("points", "samples", "first_at", "last_at", "stale")  # of a curve, which follow from its points


@transaction.atomic
def add(points: Points) -> None:
    """Add points to their curves, which are made if they are new, in a constant number of queries.

    A point that is known already, by its time, build and source, is replaced. The curves are then stale.
    """
    points = {
        key: with_samples for key, new in points.items() if (with_samples := [point for point in new if point.samples])
    }
    if not points:
        return
    database.take(Lock.CURVES)
    points = in_known_places(points)
    curves = _found_or_made(points)
    touched = _touched(curves, points)
    rows = CurveSegment.objects.filter(pk__in=[row.pk for segments in touched.values() for row in segments])
    stored = {pk: unpack(bytes(packed)) for pk, packed in rows.values_list("pk", "packed")}
    fresh: list[CurveSegment] = []
    for key, new in points.items():
        curve = curves[key]
        old = [point for segment in touched[key] for point in stored[segment.pk]]
        every = merged(old, new)
        fresh += segments_of(curve, every)
        curve.stale = True
        curve.points += len(every) - len(old)
        curve.samples += sum(len(point.samples) for point in every) - sum(len(point.samples) for point in old)
        curve.first_at = min(every[0].at, curve.first_at or every[0].at)
        curve.last_at = max(every[-1].at, curve.last_at or every[-1].at)
    CurveSegment.objects.filter(pk__in=list(stored)).delete()
    CurveSegment.objects.bulk_create(fresh, batch_size=200)
    Curve.objects.bulk_update(curves.values(), _NUMBERS, batch_size=100)


def around(places: Collection[CurveKey]) -> Q:
    """Return a condition that an index serves, and that holds at all of these places; and at some others."""
    metrics, scenarios, machines = (sorted({key[part] for key in places}) for part in range(3))
    return Q(metric__in=metrics, scenario__in=scenarios, machine__in=machines)


def _found_or_made(points: Points) -> dict[CurveKey, Curve]:
    rows = Curve.objects.filter(around(points))

    def by_key() -> dict[CurveKey, Curve]:
        return {(curve.metric_id, curve.scenario_id, curve.machine_id): curve for curve in rows.all()}

    curves = by_key()
    if missing := sorted(points.keys() - curves.keys()):
        Curve.objects.bulk_create(Curve(metric_id=a, scenario_id=b, machine_id=c) for a, b, c in missing)
        curves = by_key()
    return {key: curves[key] for key in points}


def _touched(curves: Mapping[CurveKey, Curve], points: Points) -> dict[CurveKey, list[CurveSegment]]:
    """Return the segments that the new points belong to: those that cover their times, else the one before or
    after if it has room.
    """
    of_curve: dict[int, list[CurveSegment]] = defaultdict(list)
    every = CurveSegment.objects.filter(curve__in=list(curves.values())).defer("packed")
    for segment in every.order_by("first_at", "pk"):
        of_curve[segment.curve_id].append(segment)
    touched = {}
    for key, new in points.items():
        first, last = min(point.at for point in new), max(point.at for point in new)
        segments = of_curve[curves[key].pk]
        covering = [row for row in segments if row.first_at <= last and row.last_at >= first]
        before = [row for row in segments if row.last_at < first][-1:]
        after = [row for row in segments if row.first_at > last][:1]
        touched[key] = covering or [row for row in (*before, *after) if row.points < POINTS][:1]
    return touched


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
    return [point for point in points if (not since or point.at >= since) and (not until or point.at < until)]


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
    short = [row.pk for row in curves if row.points <= RECENT]
    by_curve: dict[int, list[CurvePoint]] = {pk: [] for pk in short}
    for start in range(0, len(short), 100):
        segments = CurveSegment.objects.filter(curve__in=short[start : start + 100]).order_by("last_at", "pk")
        for curve, packed in segments.values_list("curve_id", "packed"):
            by_curve[curve] += unpack(bytes(packed))
    return by_curve | {row.pk: recent(row) for row in curves if row.points > RECENT}


# --- Moving points ---

_CURVES = 100  # whose points are moved in one transaction


def store_places(places: Mapping[str, datetime], missed: Sequence[str], now: datetime) -> int:
    """Store the places of builds, and that others have none yet; move their points. Returns how many curves changed.

    The places are stored first: points that arrive meanwhile are placed correctly, and what is not moved now is moved
    by the next call.
    """
    rows = [row for part in in_parts(sorted(places)) for row in CurveBuild.objects.filter(name__in=part)]
    for row in rows:
        row.place = places[row.name]
    with transaction.atomic():
        database.take(Lock.CURVES)  # who adds points reads the places under it
        CurveBuild.objects.bulk_update(rows, ["place"], batch_size=500)
    for part in in_parts(sorted(missed)):
        CurveBuild.objects.filter(name__in=part).update(sought_at=now)
    return _move_waiting()


def _move_waiting() -> int:
    """Move the points of builds whose places became known."""
    waiting = list(CurveBuild.objects.filter(moved=False).exclude(place=None))
    if not waiting:
        return 0
    places = {row.name: row.place for row in waiting if row.place}
    # The curves on which one of these builds stands elsewhere
    first, last = min(row.first_at for row in waiting), max(row.last_at for row in waiting)
    segments = CurveSegment.objects.filter(first_at__lte=last, last_at__gte=first).order_by("pk")
    moved: set[int] = set()
    for curve, packed in segments.values_list("curve_id", "packed").iterator(chunk_size=100):
        if curve not in moved and any(placed(point, places) != point for point in unpack(bytes(packed))):
            moved.add(curve)
    curves = sorted(moved)
    for start in range(0, len(curves), _CURVES):
        _move(curves[start : start + _CURVES], places)
    for part in in_parts([row.pk for row in waiting]):
        CurveBuild.objects.filter(pk__in=part).update(moved=True)
    return len(curves)


@transaction.atomic
def _move(curves: Sequence[int], places: Mapping[str, datetime]) -> None:
    """Order the points of curves anew. The curves are then stale."""
    database.take(Lock.CURVES)
    points: dict[int, dict[tuple[datetime, str, str], CurvePoint]] = {pk: {} for pk in curves}
    segments = CurveSegment.objects.filter(curve__in=curves)
    for curve, packed in segments.values_list("curve_id", "packed"):
        moved = (placed(point, places) for point in unpack(bytes(packed)))
        points[curve].update((point.key, point) for point in moved)
    rows = list(Curve.objects.filter(pk__in=curves))
    segments.delete()
    ordered = {row.pk: [points[row.pk][key] for key in sorted(points[row.pk])] for row in rows}
    CurveSegment.objects.bulk_create([segment for row in rows for segment in segments_of(row, ordered[row.pk])], 200)
    for row in rows:
        every = ordered[row.pk]
        row.first_at, row.last_at, row.stale = every[0].at, every[-1].at, True
        row.points, row.samples = len(every), sum(len(point.samples) for point in every)
    Curve.objects.bulk_update(rows, _NUMBERS, batch_size=100)
