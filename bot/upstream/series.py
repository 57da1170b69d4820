"""The stable series that are alive, and what each carries, judged by the tags of landings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.git.commits import Tag
from tracker.domain import versions
from tracker.domain.versions import Version

# A series whose last release is this much older than the newest of all is end of life (kernel.org/category/releases).
_MAX_AGE = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class Cure:
    """A fix or a revert: the tags it landed at, in the mainline and in stable trees, and those of its own reverts."""

    tags: Collection[str]
    undone: Collection[str] = ()


def live_series(tags: Sequence[Tag]) -> dict[str, str]:
    """Return the series that still get releases, each with its newest: {"v6.6": "v6.6.12"}."""
    newest: dict[str, tuple[Version, Tag]] = {}
    for tag in tags:
        version = versions.parse(tag.name)
        if version and version.is_stable and not version.is_candidate:
            known = newest.get(version.cycle)
            if known is None or version > known[0]:
                newest[version.cycle] = (version, tag)
    last = max((tag.at for _, tag in newest.values()), default=None)
    return {cycle: tag.name for cycle, (_, tag) in newest.items() if last and tag.at >= last - _MAX_AGE}


def carried(cycle: str, culprits: Collection[str], cures: Collection[Cure]) -> str | None:
    """Return None if a series doesn't carry a culprit that landed at these tags, "" if it does and its fix is missing,
    else the release that brought the fix.
    """
    base = versions.parse(cycle)
    since = min(_releases_with(base, culprits), default=None) if base else None
    if base is None or since is None:
        return None
    fix_releases = [first for cure in cures if (first := _first_release_with(base, cure))]
    if not fix_releases:
        return ""
    cured = min(fix_releases)
    return None if cured <= since or cured == base else f"{cured.cycle}.{cured.extra or cured.update}"


def _first_release_with(base: Version, cure: Cure) -> Version | None:
    """Return the first release of a series with a fix; None if it has none, or reverted it."""
    return min(_releases_with(base, cure.tags), default=None) if not _releases_with(base, cure.undone) else None


def _releases_with(base: Version, tags: Collection[str]) -> list[Version]:
    """Return the releases of a series that brought what landed at these tags; its base for all that is older."""
    found = [version for tag in tags if (version := versions.parse(tag))]
    updates = [each for each in found if each.is_stable and each.cycle == base.cycle]
    return [*updates, *(base for each in found if each <= base and not each.is_stable)]
