"""Which stable series carry a culprit without its fix: "in v6.6.12, fix missing"."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.upstream.refs import Tag
from bot.upstream.tracked import Tracked
from tracker import versions
from tracker.happenings import Part
from tracker.models import Landing, StableSeries, Tree
from tracker.models.tree import TreeRole
from tracker.versions import Version

# A series without a release for so long before the newest of all has come to its end (kernel.org/category/releases).
_LIVES = timedelta(days=180)
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Series:
    """A stable series and its newest release: v6.6 at v6.6.12."""

    base: Version
    newest: Version
    name: str


def live_series(tags: Sequence[Tag]) -> list[Series]:
    """The series that still get releases, by their tags."""
    newest: dict[str, tuple[Version, Tag]] = {}
    for tag in tags:
        version = versions.parse(tag.name)
        if (
            version
            and version.update
            and not version.is_candidate
            and version >= newest.get(version.cycle, (version,))[0]
        ):
            newest[version.cycle] = (version, tag)
    last = max((tag.at for _, tag in newest.values()), default=None)
    bases = {cycle: versions.parse(cycle) for cycle in newest}
    return [
        Series(base, version, tag.name)
        for cycle, (version, tag) in newest.items()
        if last and tag.at >= last - _LIVES and (base := bases[cycle])
    ]


def carried(base: Version, culprits: Collection[str], cures: Collection[str]) -> str | None:
    """Whether a series carries a culprit: None where it does not, "" where no cure came, else the release with it.

    Both by the tags of their landings, in the mainline up to the series' base, and in the series itself.
    """
    first = _first_in(base, culprits)
    if first is None:
        return None
    cured = _first_in(base, cures)
    if cured is None:
        return ""
    return None if cured <= first or cured <= base else _name(cured)


def _first_in(base: Version, tags: Collection[str]) -> Version | None:
    """The first release of a series, or its base, that holds what landed at one of these tags."""
    found = [version for tag in tags if (version := versions.parse(tag))]
    inside = [each for each in found if each.cycle == base.cycle and each.update]
    before = [base for each in found if each <= base and not each.update]
    return min((*inside, *before), default=None)


def _name(version: Version) -> str:
    return f"{version.cycle}.{version.update}"


def remember(tree: Tree, tags: Sequence[Tag]) -> bool:
    """Keep which series a stable tree has now. Whether there is another one than before, which may carry anything."""
    told = {each.base.cycle: each.name for each in live_series(tags)}
    other: bool = told.keys() != tree.series.keys()
    if told != tree.series:
        tree.series = told
        Tree.objects.filter(pk=tree.pk).update(series=told)
        StableSeries.objects.filter(tree=tree).exclude(series__in=told).delete()
        for series, newest in told.items():
            StableSeries.objects.filter(tree=tree, series=series).exclude(newest=newest).update(newest=newest)
    return other


def tell(tracked: Tracked, reports: Collection[int]) -> None:
    """Tell anew, for every stable tree, what its series carry of the culprits of these reports."""
    trees = [tree for tree in Tree.objects.filter(role=TreeRole.STABLE) if tree.series]
    chosen = [pk for pk in sorted(reports) if not tracked.reports[pk].improvement]
    for start in range(0, len(chosen) if trees else 0, _AT_ONCE):
        some = chosen[start : start + _AT_ONCE]
        tags = _tags(sha for report in some for sha in tracked.commits[report])
        rows = [row for tree in trees for report in some for row in _rows(tree, tracked, report, tags)]
        StableSeries.objects.filter(report__in=some).delete()
        StableSeries.objects.bulk_create(rows, batch_size=_AT_ONCE)


def _rows(tree: Tree, tracked: Tracked, report: int, tags: Mapping[str, Collection[str]]) -> Iterator[StableSeries]:
    parts = tracked.commits[report]
    culprits = {tag for sha, each in parts.items() if each.part is Part.CULPRIT for tag in tags.get(sha, ())}
    cures = {tag for sha, each in parts.items() if each.part in (Part.FIX, Part.REVERT) for tag in tags.get(sha, ())}
    for cycle, newest in tree.series.items() if culprits else ():
        base = versions.parse(cycle)
        fixed_in = carried(base, culprits, cures) if base else None
        if base and fixed_in is not None:
            yield StableSeries(
                report_id=report, tree=tree, series=cycle, number=base.number, newest=newest, fixed_in=fixed_in
            )


def _tags(shas: Iterable[str]) -> dict[str, set[str]]:
    """The tags of these commits' landings, in the mainline and in stable trees."""
    every = sorted(set(shas))
    told: dict[str, set[str]] = {}
    for start in range(0, len(every), _AT_ONCE):
        rows = Landing.objects.filter(
            tree__role__in=(TreeRole.MAINLINE, TreeRole.STABLE), commit__sha__in=every[start : start + _AT_ONCE]
        )
        for sha, tag in rows.filter(gone_at=None).exclude(tag="").values_list("commit__sha", "tag"):
            told.setdefault(sha, set()).add(tag)
    return told
