"""What many results speak of at once, found or made in a few queries: commits, trees, machines, metrics, scenarios.

registry.py does the same for one thing at a time. Rows are made in the order of their names, so that two workers
which need the same ones don't wait for each other in a circle; where another worker makes the same row at the same
moment, an IntegrityError tells the caller to try once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from django.db import models

from tracker import bulk
from tracker.listing import relist
from tracker.models import Commit, Machine, Metric, Report, Scenario, Tree
from tracker.models.metric import Direction, DirectionBy

Row = TypeVar("Row", bound=models.Model)
_SHORTEST, _WHOLE = 10, 40  # digits of a sha: what reports of old told, and what git gives


def _ensure(field: str, wanted: Mapping[str, Row]) -> dict[str, Row]:
    """The rows that hold these values in a unique field, by that value; those that lack are made as wanted."""
    if not wanted:
        return {}
    manager = type(next(iter(wanted.values())))._default_manager
    known: dict[str, Row] = manager.in_bulk(list(wanted), field_name=field)
    missing = [wanted[name] for name in sorted(wanted.keys() - known.keys())]
    bulk.create(missing, field)
    return known | {getattr(row, field): row for row in missing}


_PARTS = ("cpus", "sockets", "cpu_model", "codename", "memory_bytes")


def machines(wanted: Iterable[Machine]) -> dict[str, Machine]:
    """By name; what is known of a machine already stays, and what was not is learned when it is told."""
    told = {each.name: each for each in wanted}
    rows = _ensure("name", told)
    for name, row in rows.items():
        learned = [part for part in _PARTS if getattr(told[name], part) and not getattr(row, part)]
        for part in learned:
            setattr(row, part, getattr(told[name], part))
        if learned:
            row.save(update_fields=learned)
    return rows


def scenarios(wanted: Iterable[Scenario]) -> dict[str, Scenario]:
    """By key."""
    return _ensure("key", {each.key: each for each in wanted})


def trees(wanted: Iterable[Tree]) -> dict[str, Tree]:
    """By name; an address is learned when it is told for the first time."""
    told = {each.name: each for each in wanted}
    rows = _ensure("name", told)
    for row in rows.values():
        if told[row.name].url and not row.url:
            row.url = told[row.name].url
            row.save(update_fields=["url"])
    return rows


def metrics(wanted: Iterable[Metric]) -> tuple[dict[str, Metric], list[Metric]]:
    """By name, and those that were known with another direction until now, or without one.

    A direction told by a lab stands against the table's, and an operator's against both.
    """
    told: dict[str, Metric] = {}
    for each in wanted:
        first = told.setdefault(each.name, each)
        if _outranks(each, first):
            told[each.name] = each
    rows = _ensure("name", told)
    changed = [row for row in rows.values() if _outranks(told[row.name], row) or (told[row.name].unit and not row.unit)]
    turned = [row for row in changed if told[row.name].direction not in (row.direction, Direction.UNKNOWN)]
    for row in changed:
        if _outranks(told[row.name], row):
            row.direction, row.direction_by = told[row.name].direction, told[row.name].direction_by
        row.unit = row.unit or told[row.name].unit
    if changed:
        Metric.objects.bulk_update(changed, ["direction", "direction_by", "unit"])
    return rows, turned


_RANK = {who: rank for rank, who in enumerate(reversed(DirectionBy.values))}


def _outranks(told: Metric, known: Metric) -> bool:
    return told.direction != Direction.UNKNOWN and _RANK[told.direction_by] > _RANK[known.direction_by]


_TOLD = ("title", "author_name", "author_email", "authored_at", "trailers", "patch_message_id", "patch_id")


def commits(wanted: Iterable[Commit]) -> dict[str, Commit]:
    """By the sha told, which is whole, and takes the place of its beginning where only that was known.

    What is told now fills what was not known.
    """
    told: dict[str, Commit] = {}
    for each in wanted:
        _fill(told.setdefault(each.sha, each), each)
    rows: dict[str, Commit] = Commit.objects.in_bulk(list(told), field_name="sha")
    rows |= _by_beginning(told.keys() - rows.keys())
    changed = [row for sha, row in rows.items() if _fill(row, told[sha])]
    if changed:
        Commit.objects.bulk_update(changed, ["sha", *_TOLD], batch_size=50)
        relist(Report.objects.filter(culprit__in=changed).values_list("pk", flat=True))
    return rows | _ensure("sha", {sha: each for sha, each in told.items() if sha not in rows})


def _by_beginning(shas: Collection[str]) -> dict[str, Commit]:
    """The commits that were known by the beginning of one of these shas only. Few are: old reports told ten digits."""
    short = Commit.objects.filter(sha_length__gte=_SHORTEST, sha_length__lt=_WHOLE)
    lengths = short.order_by("sha_length").values_list("sha_length", flat=True).distinct()
    whole = {sha[:length]: sha for length in lengths for sha in shas if len(sha) > length}
    return {whole[row.sha]: row for row in Commit.objects.filter(sha__in=list(whole))} if whole else {}


def _fill(row: Commit, told: Commit) -> bool:
    """Take over what was not known; whether there was anything."""
    changed = [name for name in _TOLD if getattr(told, name) and not getattr(row, name)]
    for name in changed:
        setattr(row, name, getattr(told, name))
    if len(told.sha) > len(row.sha):
        row.sha = told.sha
        changed.append("sha")
    return bool(changed)
