"""What may be closed by now, as suggestions with their reasons: each waits for a person, and can be undone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tracker.domain.events import OPEN, EventData, EventKind, Verdict
from tracker.domain.report_state.fold import effective_events, fold

GONE_FOR = timedelta(days=90)  # after which a culprit that left next is not expected any more


@dataclass(frozen=True, slots=True)
class Closing:
    """An event that would close a report, and why. `since`: from when on the reason holds; it names the suggestion."""

    kind: EventKind
    reason: str
    since: datetime

    @property
    def key(self) -> str:
        return f"{self.kind}:closing-{self.since:%Y%m%d}"


def closing_of(
    verdict: Verdict, events: Iterable[EventData], released_at: datetime | None, now: datetime
) -> Closing | None:
    """Return what would close a report by now; None if nothing would, or if it is closed.

    `released_at`: when the release that it belongs to was made.
    """
    rows = effective_events(list(events))
    state = fold(verdict, rows)
    if state.state not in OPEN:
        return None
    if verdict is Verdict.IMPROVEMENT:
        if released_at is None or released_at > now:
            return None
        return Closing(EventKind.EXPECTED, f"an improvement, released on {released_at:%Y-%m-%d}", released_at)
    return _left_next(rows, now)


def _left_next(events: list[EventData], now: datetime) -> Closing | None:
    """Return the closing of a culprit that left linux-next and never reached the mainline."""
    if any(each.kind in (EventKind.MERGED, EventKind.LANDED) for each in events):
        return None
    moved = [each for each in events if each.kind in (EventKind.IN_NEXT, EventKind.GONE)]
    last = max(moved, key=EventData.order, default=None)
    if last is None or last.kind is not EventKind.GONE or now - last.occurred_at < GONE_FOR:
        return None
    reason = f"gone from next since {last.occurred_at:%Y-%m-%d}, and never merged"
    return Closing(EventKind.DROPPED, reason, last.occurred_at)
