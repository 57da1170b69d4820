"""Curves: packed points, builds with their intervals, noise from a history, and changes that stay."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.made_series import KINDS, made, returned
from tracker.domain.curves import (
    AFTER,
    LEAST_BEFORE,
    CurveNoise,
    CurvePoint,
    ReportedChange,
    builds_of,
    change_points,
    history_before,
    merged,
    noise_of,
    pack,
    read_curve,
    shifts,
    undone,
    unpack,
)

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def points(levels: list[float], runs: int = 3) -> list[CurvePoint]:
    """One build a day, each with `runs` samples 1% around its level."""
    rng = random.Random(3)
    return [
        CurvePoint(
            DAY + timedelta(days=day), f"{day:040x}", tuple(level * (1 + rng.gauss(0, 0.01)) for _ in range(runs)), "x"
        )
        for day, level in enumerate(levels)
    ]


POINT = st.builds(
    CurvePoint,
    st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=45),
    st.lists(st.floats(allow_nan=False), max_size=6).map(tuple),
    st.text("abc 123", max_size=20),
)


@given(st.lists(POINT, max_size=20))
def test_what_is_packed_is_unpacked(some: list[CurvePoint]) -> None:
    assert unpack(pack(some)) == some


@given(st.lists(POINT, max_size=12), st.lists(POINT, max_size=12))
def test_points_are_merged_in_order_and_once(old: list[CurvePoint], new: list[CurvePoint]) -> None:
    both = merged(old, new)
    assert [each.key for each in both] == sorted({each.key for each in (*old, *new)})
    assert merged(both, new) == both


def test_the_runs_of_a_build_stand_together() -> None:
    first = CurvePoint(DAY, "a" * 40, (10.0, 12.0), "result 1")
    again = CurvePoint(DAY + timedelta(hours=1), "a" * 40, (11.0, float("nan")), "result 2")
    (build,) = builds_of([again, first])
    assert (build.samples, build.sources, build.level, build.mean) == (
        (10.0, 12.0, 11.0),
        ("result 1", "result 2"),
        11,
        11,
    )
    assert build.low == pytest.approx(11 - 4.30 / 3**0.5)
    (single,) = builds_of([CurvePoint(DAY, "b", (5.0,), "x")])
    assert (single.low, single.high) == (5.0, 5.0)
    assert builds_of([CurvePoint(DAY, "c", (), "x")]) == []


def test_the_noise_is_of_the_level_not_of_its_change() -> None:
    levels = [100.0] * 30 + [130.0] * 30
    builds = builds_of(points(levels))
    changes = change_points([each.level for each in builds])
    noise = noise_of(builds, [each.index for each in changes])
    assert noise is not None
    assert (noise.runs, noise.builds, noise.modes_pct) == (180, 60, None)
    assert noise.run_pct == pytest.approx(1.0, abs=0.4)
    assert noise.build_pct == pytest.approx(0.6, abs=0.4)
    assert noise_of(builds[:4], []) is None  # no history
    assert noise_of(builds_of(points([0.0] * 30)), []) is None


@pytest.mark.parametrize("size", [1e308, -1e308, 1e151, 1e-151, 5e-324])
def test_numbers_that_no_picture_holds_are_left_out(size: float) -> None:
    """One such result would end every later look at any curve."""
    hostile = [CurvePoint(DAY + timedelta(days=n), f"{n}", (size, size), "x") for n in range(30)]
    assert builds_of(hostile) == []
    (build,) = builds_of([CurvePoint(DAY, "a", (5.0, size, 0.0), "x")])
    assert build.samples == (5.0, 0.0)


def test_two_modes_have_a_name() -> None:
    rng = random.Random(5)
    builds = builds_of(points([100.0 if rng.random() < 0.6 else 115.0 for _ in range(60)]))
    noise = noise_of(builds, [])
    assert noise is not None
    assert noise.modes_pct == pytest.approx(15, abs=2)


@pytest.mark.parametrize(
    ("levels", "places"),
    [
        ([100] * 20 + [110] * 6, [20]),
        ([100] * 20 + [110] * 5, []),  # not long enough to be told from a spike
        ([100] * 20 + [150] * 3 + [100] * 20, []),
        ([100] * 4 + [120] * 20, []),  # no history before it
        ([100] * 20 + [120] * 20 + [90] * 20, [20, 40]),
        ([100] * 20 + [120] * 7 + [100] * 6, [20, 27]),
        ([100] * 20 + [100.5] * 20, []),  # half a per cent is left alone
        ([100 + number * 0.2 for number in range(80)], []),  # a drift
        ([-100] * 20 + [-120] * 20, [20]),
        ([0] * 20 + [1] * 20, [20]),
        ([], []),
        ([1], []),
    ],
)
def test_changes_of_plain_curves(levels: list[float], places: list[int]) -> None:
    assert [each.index for each in change_points(levels)] == places


def test_the_builds_of_one_bisection_are_no_history() -> None:
    """Its steps stand beside its ends."""
    ends = [DAY, DAY + timedelta(seconds=1), DAY + timedelta(days=1), DAY + timedelta(days=1, seconds=1)]
    steps = [CurvePoint(ends[n // 3], f"{n}", (100.0 + n % 3, 100.0), "result 1") for n in range(12)]
    assert noise_of(builds_of(steps), []) is None


def bisection(number: int, day: float, old: float, new: float) -> list[CurvePoint]:
    """What the result of a bisection adds: a parent and a culprit that nobody else measures."""
    rng = random.Random(number)
    at, source = DAY + timedelta(days=day), f"result {number}"
    sides = ((at - timedelta(seconds=1), f"parent{number}", old), (at, f"culprit{number}", new))
    return [
        CurvePoint(when, name, tuple(level * (1 + rng.gauss(0, 0.01)) for _ in range(6)), source)
        for when, name, level in sides
    ]


def culprit(number: int, old: float = 100.0, new: float = 80.0) -> ReportedChange:
    return ReportedChange(f"culprit{number}", old, new, f"result {number}")


def test_reported_regressions_are_no_noise() -> None:
    """Four bisections of -20% in one place: each next parent is good again, for the culprits were not merged yet."""
    found = [point for n in range(8) for point in bisection(n, 7 * n, 100.0, 80.0)]
    reading = read_curve(builds_of(found), [culprit(n) for n in range(8)])
    assert reading.noise is not None
    assert (reading.noise.modes_pct, reading.noise.builds) == (None, 8)
    assert reading.noise.build_pct < 1.5
    history = history_before(reading, "culprit7")
    assert history is not None
    assert (history.builds, history.modes_pct) == (8, None)


def test_a_culprit_that_landed_but_is_not_found_yet_parts_the_levels() -> None:
    daily = points([100.0] * 20 + [80.0] * 4)  # four builds are too few to be found
    reading = read_curve(builds_of([*daily, *bisection(1, 19.5, 100.0, 80.0)]), [culprit(1)])
    assert (list(reading.changes), len(reading.cuts)) == ([], 1)
    assert reading.noise is not None
    assert reading.noise.modes_pct is None
    assert reading.noise.build_pct < 1.5


def test_numbers_too_far_apart_have_no_noise() -> None:
    """Such noise is infinite, which no database stores: it stopped all looks at curves."""
    odd = [CurvePoint(DAY + timedelta(days=n), f"{n}", (1e-100, 1e-100, 1e60), "x") for n in range(6)]
    assert read_curve(builds_of(odd), []).noise is None


def test_noise_that_a_change_is_compared_with() -> None:
    assert CurveNoise(1.0, 0.5, None, 9, 5).pct == 0.5
    assert CurveNoise(1.0, 0.5, 8.0, 9, 5).pct == 8.0  # either mode may be met
    assert CurveNoise(1.0, 0.0, None, 9, 5).pct == 1.0
    assert CurveNoise(None, 0.0, None, 9, 5).pct is None


@pytest.mark.parametrize(
    ("levels", "commit", "expected"),
    [
        ([100] * 20 + [80] * 8, 20, (0, 20)),
        ([70] * 20 + [100] * 20 + [80] * 8, 40, (20, 20)),
        ([100] * 4 + [80] * 20, 4, None),  # four builds are no history
        ([100] * 20, 99, None),  # was not measured
    ],
)
def test_how_long_a_curve_was_stable(levels: list[float], commit: int, expected: tuple[int, int] | None) -> None:
    found = history_before(read_curve(builds_of(points(levels)), []), f"{commit:040x}")
    assert (found and (int(found.since, 16), found.builds)) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([100] * 20 + [80] * 10 + [100] * 8, 30),
        ([100] * 20 + [80] * 10 + [88] * 8, None),  # less than half of the way
        ([100] * 20 + [80] * 10 + [100] * 10 + [80] * 8, None),  # and lost again
        ([100] * 20 + [80] * 10 + [60] * 10 + [101] * 8, 40),
        ([100] * 20 + [80] * 10 + [101] * 10 + [110] * 8, 30),  # better still; it came back before
        ([100] * 40 + [80] * 10 + [100] * 8, 50),  # merged twenty builds after its date
        ([100] * 40 + [80] * 10, None),  # its landing is not its end
        ([100] * 40 + [120] * 10, None),  # it never held the culprit
        ([100] * 20 + [80] * 10, None),
        ([100] * 40, None),
    ],
)
def test_whether_a_change_was_undone(levels: list[float], expected: int | None) -> None:
    daily = points(levels)
    reading = read_curve(builds_of([*daily, *bisection(1, 19.5, 100.0, 80.0)]), [culprit(1)])
    found = undone(reading, culprit(1))
    place = found and int(reading.history[found.change.index].name, 16)
    assert place == expected
    assert undone(reading, culprit(2)) is None  # was not measured here


@pytest.mark.parametrize("seed", range(20))
def test_the_landing_of_a_culprit_is_not_its_end(seed: int) -> None:
    rng = random.Random(seed)
    levels = [(100 if n < 45 else 80) * (1 + rng.gauss(0, 0.01)) for n in range(60)]
    reading = read_curve(builds_of([*points(levels), *bisection(seed, 24.5, 100.0, 80.0)]), [culprit(seed)])
    assert reading.changes
    assert undone(reading, culprit(seed)) is None
    backwards = culprit(seed, 80.0, 100.0)  # an improvement that was lost is no regression that went
    assert undone(read_curve(builds_of(points(levels)), [backwards]), backwards) is None


@given(st.lists(st.floats(-1e6, 1e6), max_size=60), st.integers(0, 60))
def test_any_curve_has_a_past(levels: list[float], commit: int) -> None:
    name = f"{commit:040x}"
    reported = [ReportedChange(name, 1.0, 0.5, "x"), ReportedChange(name, 2.0, 2.0, "x")]
    reading = read_curve(builds_of(points(levels)), reported)
    history_before(reading, name)
    undone(reading, reported[0])
    assert reading.noise is None or reading.noise.pct is None or reading.noise.pct > 0


@given(st.lists(st.floats(-1e6, 1e6), max_size=60), st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_what_was_found_stays_found(levels: list[float], more: list[float]) -> None:
    """More builds place a change better, by a few builds, and never take it back."""
    before, after = change_points(levels), change_points([*levels, *more])
    assert all(LEAST_BEFORE - AFTER <= each.index < len(levels) for each in before)
    assert len(after) >= len(before)
    for one, other in zip(before, after, strict=False):
        assert abs(one.index - other.index) <= 2 * AFTER


def test_a_shift_is_between_the_levels_of_whole_stretches() -> None:
    levels = [100.0] * 10 + [104.0] * 11 + [90.0] * 30 + [99.0] * 20  # the change at 21 sees twelve builds back only
    changes = change_points(levels)
    moves = shifts(levels, changes)
    assert [(move.old, move.new) for move in moves] == [(100.0, 104.0), (104.0, 90.0), (90.0, 99.0)]
    assert [move.change_pct for move in moves] == pytest.approx([4.0, -13.46, 10.0], abs=0.01)
    assert moves[2].interval == pytest.approx((10.0, 10.0))  # builds that never vary
    assert shifts(levels, []) == []


def test_the_interval_of_a_shift_holds_the_truth_as_often_as_it_says() -> None:
    """Percentile intervals of medians are a little wide: of 95% intervals, 90 to 100% hold it."""
    rng = random.Random(7)
    held = total = 0
    for _ in range(60):
        levels = [100 + rng.gauss(0, 1) for _ in range(40)] + [90 + rng.gauss(0, 1) for _ in range(25)]
        for move in shifts(levels, change_points(levels)):
            assert move.interval is not None
            total += 1
            held += move.interval[0] <= -10.0 <= move.interval[1]
    assert total >= 58
    assert 0.9 <= held / total <= 1
    assert move.interval[1] - move.interval[0] < 3  # and says something


@given(st.lists(st.floats(-1e300, 1e300), max_size=60))
def test_shifts_of_junk(levels: list[float]) -> None:
    changes = change_points(levels)
    moves = shifts(levels, changes)
    assert len(moves) == len(changes)
    assert all(move.interval is None or move.interval[0] <= move.interval[1] for move in moves)
    assert moves == shifts(levels, changes)


@pytest.mark.parametrize(("levels", "why"), [([0.0] * 20 + [1.0] * 20, "from zero"), ([5.0] * 20 + [9.0] * 8, "")])
def test_an_interval_needs_a_level_to_be_relative_to(levels: list[float], why: str) -> None:
    (move,) = shifts(levels, change_points(levels))
    assert (move.interval is None) == bool(why)


def test_made_series_are_read_as_well_as_said() -> None:
    """A short version of benchmarks/accuracy/change_points.py, on a seed of its own."""
    rng = random.Random(11)
    steps = [made("step", rng) for _ in range(40)]
    hits = sum(any(abs(each.index - one.step) <= 2 for each in change_points(one.levels)) for one in steps if one.step)
    false = sum(bool(change_points(made(kind, rng).levels)) for kind in KINDS if kind != "step" for _ in range(30))
    assert hits >= 34
    assert false <= 5
    returns = [returned(rng) for _ in range(40)]
    back = sum(
        any(abs(each.index - one.back) <= 2 for each in change_points(one.levels)) for one in returns if one.back
    )
    assert back >= 34  # though it may come back before twelve builds are on the new level
