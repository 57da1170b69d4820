"""The cycle of a release: its release candidates, the expected next one, and what was open at each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tracker.charts import cycle_chart
from tracker.domain.versions import CyclePoint, ReportSpan, points, steps, upcoming

OPENED = datetime(2020, 1, 26, tzinfo=UTC)
RC1 = OPENED + timedelta(days=14)


def day(number: int) -> datetime:
    """Days after -rc1."""
    return RC1 + timedelta(days=number)


def test_candidates_stand_in_their_order() -> None:
    found = points("v5.6", {2: day(8), 1: day(1)})
    assert found == [CyclePoint("v5.6-rc1", day(1)), CyclePoint("v5.6-rc2", day(8))]
    assert points("v5.6", {}) == []


@pytest.mark.parametrize(
    ("tagged", "now", "expected"),
    [
        ({}, OPENED + timedelta(days=3), CyclePoint("v5.6-rc1", RC1)),
        ({1: RC1}, day(2), CyclePoint("v5.6-rc2", day(7))),
        ({6: RC1, 7: day(7)}, day(8), CyclePoint("v5.6 or v5.6-rc8", day(14))),
        ({1: RC1}, day(60), None),  # nobody has followed the tree for long
    ],
)
def test_the_next_one(tagged: dict[int, datetime], now: datetime, expected: CyclePoint | None) -> None:
    assert upcoming("v5.6", OPENED, tagged, now) == expected
    assert upcoming("v5.6", None, {}, now) is None


def span(reported: int, closed: int | None = None, *, regression: bool = True) -> ReportSpan:
    return ReportSpan(day(reported), day(closed) if closed is not None else None, closed is None, regression)


def test_a_burn_down_counts_regressions() -> None:
    spans = [span(0), span(3, 9), span(8), span(9, 10), span(2, regression=False), span(30)]
    burn_down = steps([CyclePoint("rc1", day(1)), CyclePoint("rc2", day(8)), CyclePoint("rc3", day(15))], spans)
    assert [(step.new, step.closed, step.open) for step in burn_down] == [(1, 0, 1), (2, 0, 3), (1, 2, 2)]
    drawn = cycle_chart(burn_down)
    assert drawn is not None
    assert drawn.description == "Open regressions: 1 at rc1, 3 at rc2, 2 at rc3"
    assert len(drawn.dots) == 3
    assert min(y for _, y, _, _ in drawn.dots) == next(y for _, y, _, number in drawn.dots if number == 3)
    assert cycle_chart(burn_down[:1]) is None
    assert cycle_chart(steps([CyclePoint("rc1", day(1)), CyclePoint("rc2", day(2))], [])) is not None
