"""Where builds stand on curves: at the dates that came with them, until their places in the mainline are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from tracker.domain import versions
from tracker.domain.curves.points import CurvePoint, to_the_millisecond
from tracker.models import CurveBuild
from tracker.services.sql.bulk import in_parts

_SHA = re.compile(r"[0-9a-f]{40}\Z")
_MOST = 5000  # builds that are looked for in one walk, the newest
_AGAIN = timedelta(days=180)  # what was not merged so long after its measurement is not looked for any more
Points = Mapping[tuple[int, int, int], Sequence[CurvePoint]]  # by ids of metric, scenario and machine


def name_of(build: str) -> str:
    """Return the commit or version that a build was made of, without its setup; "" if it is neither."""
    name = build.partition("/")[0]
    return name if _SHA.match(name) or versions.parse(name) else ""


def in_known_places(points: Points) -> dict[tuple[int, int, int], list[CurvePoint]]:
    """Return points at the places of their builds as far as those are known; the others are noted, to be looked for."""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for each in (point for new in points.values() for point in new):
        if name := name_of(each.build):
            first, last = spans.get(name, (each.at, each.at))
            spans[name] = min(first, each.at), max(last, each.at)
    known = {row.name: row for part in in_parts(sorted(spans)) for row in CurveBuild.objects.filter(name__in=part)}
    rows: list[CurveBuild] = []
    for name, (first, last) in spans.items():
        row = known.get(name)
        if row is None:
            rows.append(CurveBuild(name=name, first_at=first, last_at=last))
        elif not row.moved and (first < row.first_at or last > row.last_at):
            row.first_at, row.last_at = min(first, row.first_at), max(last, row.last_at)
            rows.append(row)
    if rows:
        columns = ["first_at", "last_at"]
        CurveBuild.objects.bulk_create(rows, 500, update_conflicts=True, update_fields=columns, unique_fields=["name"])
    places = {row.name: row.place for row in known.values() if row.place}
    return {key: [placed(each, places) for each in new] for key, new in points.items()}


def placed(point: CurvePoint, places: Mapping[str, datetime]) -> CurvePoint:
    place = places.get(name_of(point.build)) if places else None
    return to_the_millisecond(point._replace(at=place) if place else point)


def sought(walked_at: datetime | None, now: datetime) -> list[str]:
    """Return the builds whose place is not known, and which the mainline may hold, as it was last changed."""
    rows = CurveBuild.objects.filter(moved=False, place=None)
    again = Q(sought_at__lt=walked_at, last_at__gt=now - _AGAIN) if walked_at else Q()
    rows = rows.filter(Q(sought_at=None) | again)
    return list(rows.order_by("-last_at").values_list("name", flat=True)[:_MOST])
