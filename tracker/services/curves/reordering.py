"""Builds whose places in the mainline became known: their points are moved there, and their curves looked at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from tracker.domain.curves.points import CurvePoint, unpack
from tracker.models import Curve, CurveBuild, CurveSegment
from tracker.services.curves import storage
from tracker.services.curves.places import placed
from tracker.services.sql import locks
from tracker.services.sql.bulk import in_parts
from tracker.services.sql.locks import Lock

_CURVES = 100  # whose points are moved in one transaction


def store_places(places: Mapping[str, datetime], missed: Sequence[str], now: datetime) -> int:
    """Store the places of builds, and that others have none yet; move their points. Returns how many curves changed.

    The places are stored first: what comes meanwhile stands right, and what is not moved now is moved by the next call.
    """
    rows = [row for part in in_parts(sorted(places)) for row in CurveBuild.objects.filter(name__in=part)]
    for row in rows:
        row.place = places[row.name]
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
    curves = sorted(_curves_with(waiting, places))
    for start in range(0, len(curves), _CURVES):
        _move(curves[start : start + _CURVES], places)
    for part in in_parts([row.pk for row in waiting]):
        CurveBuild.objects.filter(pk__in=part).update(moved=True)
    return len(curves)


def _curves_with(waiting: Sequence[CurveBuild], places: Mapping[str, datetime]) -> set[int]:
    """Return the curves on which one of these builds stands elsewhere."""
    first, last = min(row.first_at for row in waiting), max(row.last_at for row in waiting)
    segments = CurveSegment.objects.filter(first_at__lte=last, last_at__gte=first).order_by("pk")
    found = set()
    for curve, packed in segments.values_list("curve_id", "packed").iterator(chunk_size=100):
        if curve not in found and any(placed(each, places) != each for each in unpack(bytes(packed))):
            found.add(curve)
    return found


@transaction.atomic
def _move(curves: Sequence[int], places: Mapping[str, datetime]) -> None:
    """Order the points of curves anew. The curves are then stale."""
    locks.take(Lock.CURVES)
    points: dict[int, dict[tuple[datetime, str, str], CurvePoint]] = {pk: {} for pk in curves}
    segments = CurveSegment.objects.filter(curve__in=curves)
    for curve, packed in segments.values_list("curve_id", "packed"):
        moved = (placed(each, places) for each in unpack(bytes(packed)))
        points[curve].update((each.key, each) for each in moved)
    rows = list(Curve.objects.filter(pk__in=curves))
    segments.delete()
    ordered = {row.pk: [points[row.pk][key] for key in sorted(points[row.pk])] for row in rows}
    CurveSegment.objects.bulk_create([each for row in rows for each in storage.segments_of(row, ordered[row.pk])], 200)
    for row in rows:
        every = ordered[row.pk]
        row.first_at, row.last_at, row.stale = every[0].at, every[-1].at, True
        row.points, row.samples = len(every), sum(len(each.samples) for each in every)
    Curve.objects.bulk_update(rows, ["first_at", "last_at", "stale", "points", "samples"], batch_size=100)
