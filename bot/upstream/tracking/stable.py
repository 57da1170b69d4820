"""Store which stable series carry our culprits: "in v6.6.12, fix missing"."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from bot.git.commits import Tag
from bot.upstream.series import Cure, carried, live_series
from bot.upstream.tracked import Tracked
from tracker.domain import versions
from tracker.domain.events import Part, TreeRole
from tracker.models import Landing, StableSeries, Tree
from tracker.services.reports.report_summary import refresh
from tracker.services.sql.bulk import in_parts


def store_series(tree: Tree, tags: Sequence[Tag]) -> bool:
    """Store the series that a stable tree has now; other trees have none. Return True if there are other series than
    before, since they may carry anything.
    """
    now = live_series(tags) if tree.role == TreeRole.STABLE else {}
    before: dict[str, str] = tree.series
    if now == before:
        return False
    tree.series = now
    Tree.objects.filter(pk=tree.pk).update(series=now)
    gone = StableSeries.objects.filter(tree=tree).exclude(series__in=now)
    reports = list(gone.values_list("report", flat=True))
    gone.delete()
    refresh(reports)
    for series, newest in now.items():
        StableSeries.objects.filter(tree=tree, series=series).exclude(newest=newest).update(newest=newest)
    return now.keys() != before.keys()


def update_series(tracked: Tracked, reports: Collection[int]) -> None:
    """Update what the series of every stable tree carry of the culprits of these reports."""
    trees = [tree for tree in Tree.objects.filter(role=TreeRole.STABLE) if tree.series]
    if not trees:
        return
    for batch in in_parts(pk for pk in reports if not tracked.reports[pk].improvement):
        tags = _tags(sha for report in batch for sha in tracked.commits[report])
        rows = [row for tree in trees for report in batch for row in _rows(tree, tracked, report, tags)]
        StableSeries.objects.filter(report__in=batch).delete()
        StableSeries.objects.bulk_create(rows, batch_size=500)
        refresh(batch)


def _rows(tree: Tree, tracked: Tracked, report: int, tags: Mapping[str, Collection[str]]) -> Iterator[StableSeries]:
    commits = tracked.commits[report]
    culprits = {tag for sha, each in commits.items() if each.part is Part.CULPRIT for tag in tags.get(sha, ())}
    undone: dict[str, set[str]] = {}
    for sha, each in commits.items():
        if each.part is Part.UNDO:
            undone.setdefault(each.undoes, set()).update(tags.get(sha, ()))
    cures = [
        Cure(tags.get(sha, ()), undone.get(sha, ()))
        for sha, each in commits.items()
        if each.part in (Part.FIX, Part.REVERT)
    ]
    for cycle, newest in tree.series.items():
        base, fixed_in = versions.parse(cycle), carried(cycle, culprits, cures)
        if base and fixed_in is not None:
            yield StableSeries(
                report_id=report, tree=tree, series=cycle, number=base.number, newest=newest, fixed_in=fixed_in
            )


def _tags(shas: Iterable[str]) -> dict[str, set[str]]:
    """Return the tags at which these commits landed, in the mainline and in stable trees."""
    landings = Landing.objects.filter(tree__role__in=(TreeRole.MAINLINE, TreeRole.STABLE), gone_at=None)
    tags_by_sha: dict[str, set[str]] = {}
    for batch in in_parts(set(shas)):
        for sha, tag in landings.filter(commit__sha__in=batch).exclude(tag="").values_list("commit__sha", "tag"):
            tags_by_sha.setdefault(sha, set()).add(tag)
    return tags_by_sha
