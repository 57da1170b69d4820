"""After an upgrade that changes the report summary, all reports are folded again: by a worker, in the background.

Until then tables would be empty or wrong, so pages and commands say how far it is. If it is interrupted, it goes on
where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction

from tracker.models import Folding, Report
from tracker.services.reports.event_log import refold
from tracker.services.reports.report_summary import refresh

# To be raised with every column of the report summary that is added, and with every change of what one means; the
# migration that comes with it sets the row of a database without reports to it, as 0006 does.
VERSION = 3
_AT_ONCE = 500  # reports
_known_complete: set[int] = set()  # the versions that this process has seen complete: they stay so


@dataclass(frozen=True, slots=True)
class FoldProgress:
    """How many of all reports are folded by this version."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"folding all reports after an upgrade: {self.done:,} of {self.total:,}"


def progress() -> FoldProgress | None:
    """Return how far it is; None if all is folded, which costs no query once it is known."""
    if VERSION in _known_complete:
        return None
    row = _row()
    if row.version < VERSION and Report.objects.exists():
        rest = Report.objects.filter(pk__gt=row.folded_to).count()
        total = Report.objects.count()
        return FoldProgress(total - rest, total)
    if row.version < VERSION:
        mark_complete()
    _known_complete.add(VERSION)
    return None


def fold_all(report: Callable[[FoldProgress], None] = lambda at: None) -> int:
    """Fold all reports that this version has not folded yet. Return how many. `report` is called after every slice."""
    number = 0
    while at := progress():
        report(at)
        row = _row()
        keys = list(Report.objects.filter(pk__gt=row.folded_to).order_by("pk").values_list("pk", flat=True)[:_AT_ONCE])
        if not keys:
            mark_complete()
            continue
        with transaction.atomic():
            fold(keys)
            Folding.objects.filter(pk=row.pk).update(folded_to=keys[-1])
        number += len(keys)
    return number


def fold(keys: list[int]) -> None:
    """Fold these reports again, and refresh their summaries."""
    refold(keys)
    refresh(keys)


def mark_complete() -> None:
    """Record that all reports are folded by this version."""
    Folding.objects.filter(pk=_row().pk).update(version=VERSION, folded_to=0)


def _row() -> Folding:
    """Return the one row. A database without it is of before there was one, or new."""
    return Folding.objects.get_or_create(pk=1, defaults={"version": 0})[0]
