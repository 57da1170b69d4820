"""What the inbox shows, in a constant number of queries: suggestions, the quarantine, and the archives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from tracker.models import Archive, Decision, Orphan, RawMessage, Suggestion

PAGE = 100  # rows of a section


@dataclass(frozen=True, slots=True)
class ArchiveRow:
    """One archive: how far it was read, and what came of that."""

    archive: Archive
    quarantined: int
    lag: timedelta | None  # from the last mail to the last reading


@dataclass(frozen=True, slots=True)
class Inbox:
    """One page; `older_…` is the key to go on with, None at the end."""

    suggestions: Sequence[Suggestion]
    older_suggestions: int | None
    quarantine: Sequence[RawMessage]
    older_quarantine: int | None
    archives: Sequence[ArchiveRow]
    waits: bool  # whether mail waits for its report


def inbox(now: datetime, suggestions_before: int | None = None, quarantine_before: int | None = None) -> Inbox:
    """The newest of each section, or those before a key."""
    suggestions = Suggestion.objects.filter(decision=Decision.OPEN).select_related("report__culprit").order_by("-pk")
    quarantine = RawMessage.objects.exclude(error="").select_related("archive").defer("compressed").order_by("-pk")
    if suggestions_before is not None:
        suggestions = suggestions.filter(pk__lt=suggestions_before)
    if quarantine_before is not None:
        quarantine = quarantine.filter(pk__lt=quarantine_before)
    asked, held = list(suggestions[: PAGE + 1]), list(quarantine[: PAGE + 1])
    return Inbox(
        asked[:PAGE],
        asked[PAGE - 1].pk if len(asked) > PAGE else None,
        held[:PAGE],
        held[PAGE - 1].pk if len(held) > PAGE else None,
        _archives(),
        Orphan.objects.filter(own=True).exists(),
    )


def _archives() -> list[ArchiveRow]:
    counted = RawMessage.objects.exclude(error="").order_by().values_list("archive").annotate(count=Count("pk"))
    quarantined = dict(counted)
    return [
        ArchiveRow(each, quarantined.get(each.pk, 0), _lag(each))
        for each in Archive.objects.order_by("path")[: PAGE * 10]
    ]


def _lag(archive: Archive) -> timedelta | None:
    if archive.read_at is None or archive.newest_at is None:
        return None
    return max(timedelta(0), archive.read_at - archive.newest_at)
