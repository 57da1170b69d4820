"""The cycle of a release: its release candidates, the expected next one, and what was open at each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.charts import cycle_chart
from tracker.domain.versions import CyclePoint, ReportSpan, parse, points, steps, upcoming

# --- Kernel versions sort in release order, and nothing else is accepted as a version ---

IN_ORDER = [
    "v2.6",
    "v2.6.39-rc3",
    "v2.6.39",
    "v2.6.39.4",
    "v3.0-rc1",
    "v5.6-rc1",
    "v5.6-rc7",
    "v5.6",
    "v5.6.1",
    "v5.6.19",
    "v5.7-rc1",
    "v5.12-rc1-dontuse",
    "v6.9",
    "v6.10-rc1",
    "v6.10",
    "v6.10.1",
]


def test_versions_sort_in_the_order_of_release() -> None:
    versions = [parse(each) for each in IN_ORDER]
    assert versions == sorted(versions)  # type: ignore[type-var]
    numbers = [version.number for version in versions if version and version.major > 2]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("tag", "cycle"), [("v5.6-rc3", "v5.6"), ("v5.6", "v5.6"), ("v6.6.12", "v6.6"), ("v2.6.39-rc3", "v2.6.39")]
)
def test_a_version_belongs_to_a_cycle(tag: str, cycle: str) -> None:
    version = parse(tag)
    assert version
    assert version.cycle == cycle


@pytest.mark.parametrize(
    "tag", ["next-20260310", "v5.6-rc", "5.6", "v5", "v5.6-rc1-dirty", "v5.6-rc1.2", "v", "v5.6\n", ""]
)
def test_other_tags_are_no_versions(tag: str) -> None:
    assert parse(tag) is None


@given(st.text())
def test_junk_is_no_error(text: str) -> None:
    version = parse(text)
    assert version is None or text.startswith(version.cycle)


# --- The cycle of a release: its release candidates, the expected next one, and what was open at each ---

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


def span(reported: int, closed: int | None = None) -> ReportSpan:
    return ReportSpan(day(reported), day(closed) if closed is not None else None, closed is None)


def test_a_burn_down_counts_regressions() -> None:
    spans = [span(0), span(3, 9), span(8), span(9, 10), span(30)]
    burn_down = steps([CyclePoint("rc1", day(1)), CyclePoint("rc2", day(8)), CyclePoint("rc3", day(15))], spans)
    assert [(step.new, step.closed, step.open) for step in burn_down] == [(1, 0, 1), (2, 0, 3), (1, 2, 2)]
    drawn = cycle_chart(burn_down)
    assert drawn is not None
    assert drawn.description == "Open regressions: 1 at rc1, 3 at rc2, 2 at rc3"
    assert len(drawn.dots) == 3
    assert min(y for _, y, _, _ in drawn.dots) == next(y for _, y, _, number in drawn.dots if number == 3)
    assert cycle_chart(burn_down[:1]) is None
    assert cycle_chart(steps([CyclePoint("rc1", day(1)), CyclePoint("rc2", day(2))], [])) is not None
