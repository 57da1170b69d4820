"""The regressions of a cycle to the digest of a week. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tracker.document.blocks import Block, Document, Heading, Link, Paragraph, Table
from tracker.status import OPEN, State

WEEK = timedelta(days=7)
MOST = 50  # reports of a section; a link leads to the others
_FIX = frozenset({State.FIX_PROPOSED, State.FIX_CONFIRMED, State.FIX_QUEUED})


@dataclass(frozen=True, slots=True)
class Told:
    """A regression. `blocks`: the release that must not go out with it."""

    sha: str
    title: str
    metric: str
    state: str
    status: str
    reported_at: datetime | None
    closed_at: datetime | None
    blocks: str


@dataclass(frozen=True, slots=True)
class Week:
    """The sections; a report stands in the first that fits."""

    new: Sequence[Told]
    silent: Sequence[Told]
    fixable: Sequence[Told]
    closed: Sequence[Told]
    open: int

    def __bool__(self) -> bool:
        return bool(self.open or self.closed)


def week(reports: Iterable[Told], now: datetime) -> Week:
    """What happened in the seven days up to now. Silent: reported before them, and nobody has answered."""
    since = now - WEEK
    new, silent, fixable, closed = [], [], [], []
    still_open = 0
    for each in reports:
        if each.state not in OPEN:
            if each.closed_at and each.closed_at > since:
                closed.append(each)
            continue
        still_open += 1
        if each.state in _FIX:
            fixable.append(each)
        elif each.reported_at and each.reported_at > since:
            new.append(each)
        elif each.state == State.NO_RESPONSE:
            silent.append(each)
    return Week(new, silent, fixable, closed, still_open)


def compose(version: str, told: Week, now: datetime) -> Document:
    """The digest of a release's cycle."""
    year, number, _ = now.isocalendar()
    count = f"{told.open} open regression{'' if told.open == 1 else 's'}"
    blocking = sum(bool(each.blocks) for each in (*told.new, *told.silent, *told.fixable))
    aside = f"{count}{f', {blocking} of those below blocking' if blocking else ''}"
    blocks = (
        Paragraph(f"Performance in the cycle of {version}, in the week up to {now:%Y-%m-%d}."),
        *_section("New", told.new, "Reported within the week."),
        *_section("Silent", told.silent, "Reported earlier, and nobody has answered."),
        *_section("A fix is there", told.fixable, "Posted, confirmed or on its way, and not in a release."),
        *_section("Fixed or closed within the week", told.closed, ""),
    )
    return Document(f"Open performance regressions in {version}, week {number} of {year}: {aside}", "", blocks)


def _section(name: str, reports: Sequence[Told], says: str) -> Iterator[Block]:
    if not reports:
        return
    yield Heading(2, f"{name}: {len(reports)}")
    if says:
        yield Paragraph(says)
    rows = [(Link(each.title, f"/report/{each.sha[:12]}/"), each.metric, _status(each)) for each in reports[:MOST]]
    yield Table(name, ("Report", "Metric", "Status"), rows, as_records=True)
    if len(reports) > MOST:
        yield Paragraph(f"And {len(reports) - MOST} more.")


def _status(each: Told) -> str:
    return f"{each.status}; blocks {each.blocks}" if each.blocks and each.state in OPEN else each.status
