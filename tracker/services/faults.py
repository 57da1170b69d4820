"""What does not work now: archives and trees that can't be opened, fetched, read or walked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from tracker.models import Archive, Mirror, Tree

MOST = 100  # of each kind


@dataclass(frozen=True, slots=True)
class Fault:
    """One line: what fails, why, and since when, if that is known."""

    name: str
    error: str
    since: datetime | None = None


def failing() -> QuerySet[Mirror]:
    """Return the configured archives that fail."""
    return Mirror.objects.exclude(error="").order_by("path")[:MOST]


def faults() -> list[Fault]:
    """Return all faults, in three queries."""
    return [
        *(Fault(each.path, each.error, each.failing_since) for each in failing()),
        *(Fault(each.path, each.error) for each in Archive.objects.exclude(error="").order_by("path")[:MOST]),
        *(Fault(each.name, each.error) for each in Tree.objects.exclude(error="").order_by("name")[:MOST]),
    ]
