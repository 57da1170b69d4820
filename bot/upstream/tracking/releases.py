"""The release cycles that a tree's tags show: their candidates, and when each was released."""

from __future__ import annotations

from collections.abc import Sequence

from bot.git.commits import Tag
from tracker.domain import versions
from tracker.models import Release, ReleaseCandidate
from tracker.services.reports.report_summary import ReleaseCalendar, refresh_since


def store(tags: Sequence[Tag]) -> None:
    """Store every release cycle in the tags, with its date once released, and its candidates.

    Refreshes the summaries of reports made since the release before the first new one.
    """
    before = ReleaseCalendar.load()
    _store_cycles(tags)
    now = ReleaseCalendar.load()
    if now != before:
        same = [old for old, new in zip(before.ends, now.ends, strict=False) if old == new]
        refresh_since(same[-1] if same and same == list(now.ends[: len(same)]) else None)


def _store_cycles(tags: Sequence[Tag]) -> None:
    known = {release.version: release for release in Release.objects.all()}
    candidates = set(ReleaseCandidate.objects.values_list("version", flat=True))
    rows: list[ReleaseCandidate] = []
    for tag in tags:
        version = versions.parse(tag.name)
        cycle = versions.parse(version.cycle) if version else None
        if version is None or cycle is None or version.is_stable:
            continue
        release = known.get(version.cycle)
        if release is None:
            release, _ = Release.objects.get_or_create(version=version.cycle, defaults={"number": cycle.number})
            known[version.cycle] = release
        if version.is_release and release.released_at is None:
            release.released_at = tag.at
            release.save(update_fields=["released_at"])
        if version.is_candidate and tag.name not in candidates:
            rows.append(ReleaseCandidate(version=tag.name, release=release, number=version.candidate, tagged_at=tag.at))
    ReleaseCandidate.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
