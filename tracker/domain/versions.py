"""Kernel versions and their order, release cycles, and the open reports at each candidate. Pure.

Versions compare in the order of release: v6.9 < v6.10-rc1 < v6.10 < v6.10.1 < v6.11-rc1. Every version belongs to the
cycle of a release: v6.12-rc3 leads to v6.12, and v6.12.7 updates it. A tag that is not a version is not an error:
`parse` returns None.

A cycle has its release candidates, the expected date of the next one (by Documentation/process/2.Process.rst of the
kernel), and a burn-down: what was reported and closed between two points, and what was open at each.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

# --- Versions ---

# Documentation/process/2.Process.rst: X.Y is a release, X.Y-rcN its -rcs, X.Y.Z its stable updates. Until 2011,
# releases had three numbers and their updates four: v2.6.39-rc7 < v2.6.39 < v2.6.39.4.
# v5.12-rc1 corrupted file systems, and its tag was renamed to v5.12-rc1-dontuse.
_NUMBER = r"(0|[1-9]\d{0,3})"
_VERSION = re.compile(
    rf"v{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(?:-rc([1-9]\d{{0,2}}))?(?:-dontuse)?\Z", re.A
)
_NO_CANDIDATE = 999


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A kernel version; compares in the order of release."""

    major: int
    minor: int
    update: int  # 0: not a stable update; in 2.6 kernels, the third number of the release
    extra: int  # the update of a 2.6 kernel
    candidate: int  # 999: the release itself, which sorts after its -rcs

    @property
    def cycle(self) -> str:
        """The release that this version leads to or belongs to: "v6.12" for "v6.12-rc3" and "v6.12.7"."""
        old = f".{self.update}" if (self.major, self.minor) == (2, 6) and self.update else ""
        return f"v{self.major}.{self.minor}{old}"

    @property
    def is_release(self) -> bool:
        return not self.is_candidate and not self.is_stable

    @property
    def is_stable(self) -> bool:
        """Whether it is a stable update, made outside the mainline."""
        return (self.extra if (self.major, self.minor) == (2, 6) else self.update) > 0

    @property
    def is_candidate(self) -> bool:
        return self.candidate != _NO_CANDIDATE

    @property
    def number(self) -> int:
        """One integer in the same order, for a database column; not in order for the -rcs of 2.6 kernels."""
        return ((self.major * 10_000 + self.minor) * 1_000 + self.candidate) * 10_000 + self.update


def cycle_of(text: str) -> str:
    """Return the cycle of a tag; "" if the tag is not a version."""
    version = parse(text)
    return version.cycle if version else ""


def parse(text: str) -> Version | None:
    """Return the version that a tag names ("v5.6-rc1", "v5.6", "v5.6.19"), or None for anything else."""
    match = _VERSION.match(text)
    if not match:
        return None
    major, minor, update, extra, candidate = (int(digits) if digits else None for digits in match.groups())
    assert major is not None
    assert minor is not None
    return Version(major, minor, update or 0, extra or 0, _NO_CANDIDATE if candidate is None else candidate)


# --- Release cycles ---

# Documentation/process/2.Process.rst: the merge window is open for two weeks and ends with -rc1; a new -rc follows
# about every week, and the release after six to ten of them.
MERGE_WINDOW = timedelta(days=14)
WEEK = timedelta(days=7)
USUAL = 8  # a cycle usually has no later -rc than this: the release may come instead


@dataclass(frozen=True, slots=True)
class CyclePoint:
    """A release candidate, or another named moment."""

    version: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ReportSpan:
    """When a regression was reported and closed, if it was, and whether it is open now."""

    reported_at: datetime | None
    closed_at: datetime | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class CycleStep:
    """What was reported and closed since the previous point, and what was open at this one."""

    point: CyclePoint
    new: int
    closed: int
    open: int


def points(version: str, tagged: Mapping[int, datetime]) -> list[CyclePoint]:
    """Return the release candidates of a cycle in order, from their tags."""
    return [CyclePoint(f"{version}-rc{number}", at) for number, at in sorted(tagged.items())]


def upcoming(
    version: str, opened_at: datetime | None, tagged: Mapping[int, datetime], now: datetime
) -> CyclePoint | None:
    """Return the next -rc of a running cycle, a week after the last one; None if it can't be predicted."""
    if tagged:
        last = max(tagged)
        name = f"{version}-rc{last + 1}" if last < USUAL - 1 else f"{version} or {version}-rc{last + 1}"
        at = tagged[last] + WEEK
    elif opened_at:
        name, at = f"{version}-rc1", opened_at + MERGE_WINDOW
    else:
        return None
    return CyclePoint(name, at) if now - at < 2 * WEEK else None


def steps(cycle_points: Sequence[CyclePoint], spans: Iterable[ReportSpan]) -> list[CycleStep]:
    """Return the burn-down of regressions, point by point."""
    # What a version brings is dated a moment after its tag, and is closed in it, not after it.
    counted = [
        replace(span, closed_at=span.closed_at.replace(microsecond=0)) if span.closed_at else span for span in spans
    ]
    burn_down = []
    for index, point in enumerate(cycle_points):
        before = cycle_points[index - 1].at if index else None
        burn_down.append(
            CycleStep(
                point,
                sum(_within(span.reported_at, before, point.at) for span in counted),
                sum(_within(span.closed_at, before, point.at) for span in counted),
                # Closed without a date: not known to have been open then
                sum(
                    _within(span.reported_at, None, point.at)
                    and (span.closed_at > point.at if span.closed_at else span.is_open)
                    for span in counted
                ),
            )
        )
    return burn_down


def _within(moment: datetime | None, after: datetime | None, until: datetime) -> bool:
    return moment is not None and moment <= until and (after is None or moment > after)
