"""From samples to grades: the statistics compared with scipy and numpy, and their invariants."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.results.values import MeasurementData
from tracker.domain.events import Grade, Verdict
from tracker.domain.statistics import (
    Graded,
    SampleSummary,
    better_pct,
    certain,
    change_pct,
    effect,
    false_discovery,
    family_wise,
    grade,
    grade_all,
    grade_of,
    least_p,
    overlap,
    share_against,
    summarise,
    t_quantile,
    verdict_of,
    welch,
)

GOOD, BAD = (1001.0, 998.0, 1003.0), (702.0, 699.5, 701.0)


def compared(old: tuple[float, ...], new: tuple[float, ...]) -> MeasurementData:
    return MeasurementData("m", "", "unknown", "kpi", summarise(old), summarise(new), old, new)


@pytest.mark.slow
def test_the_numbers_of_the_example_by_hand() -> None:
    shown = grade(compared(GOOD, BAD), "higher")
    # means 1000.667 and 700.833; squares of the distances 12.667 and 3.167, over n - 1 = 2: variances 6.333, 1.583
    assert shown.change_pct == pytest.approx(100 * (700.8333333 - 1000.6666667) / 1000.6666667)
    t = (700.8333333333 - 1000.6666666667) / math.sqrt(6.333333333 / 3 + 1.583333333 / 3)
    assert t == pytest.approx(-184.6, abs=0.1)
    freedom = (6.33333 / 3 + 1.58333 / 3) ** 2 / ((6.33333 / 3) ** 2 / 2 + (1.58333 / 3) ** 2 / 2)
    from scipy.stats import t as students

    assert shown.p_value == pytest.approx(2 * students.sf(-t, freedom), rel=1e-4)
    assert shown.verdict is Grade.REGRESSION
    assert shown.low_pct is not None
    assert shown.high_pct is not None
    assert shown.low_pct < -29.96 < shown.high_pct


number = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
samples = st.lists(number, min_size=2, max_size=12)


@given(samples, samples)
def test_welch_is_scipys(old: list[float], new: list[float]) -> None:
    from scipy.stats import ttest_ind

    assume(len(set(old)) > 1 or len(set(new)) > 1)
    ours = welch([(summarise(old), summarise(new))])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy doubts itself where values are nearly the same
        theirs = float(ttest_ind(old, new, equal_var=False).pvalue)
    assert ours == pytest.approx(theirs, abs=1e-9)


@given(samples, samples)
def test_means_and_spreads_say_the_same_as_their_samples(old: list[float], new: list[float]) -> None:
    sides = [SampleSummary(float(np.mean(each)), float(np.std(each)), len(each)) for each in (old, new)]
    ours, theirs = welch([(summarise(old), summarise(new))])[0], welch([(sides[0], sides[1])])[0]
    assert (ours is None) == (theirs is None)
    if ours is not None and min(np.std(old), np.std(new)) > 1e-3:
        assert theirs == pytest.approx(ours, abs=1e-6)


@given(samples, samples)
def test_the_verdict_turns_exactly_when_the_direction_turns(old: list[float], new: list[float]) -> None:
    higher, lower, unknown = (grade(compared(tuple(old), tuple(new)), each) for each in ("higher", "lower", "unknown"))
    turned = {Grade.REGRESSION: Grade.IMPROVEMENT, Grade.IMPROVEMENT: Grade.REGRESSION}
    assert lower.verdict is turned.get(higher.verdict, higher.verdict)
    assert unknown.verdict is (Grade.UNKNOWN if higher.verdict in turned else higher.verdict)
    assert (higher.change_pct, higher.p_value, higher.low_pct) == (lower.change_pct, lower.p_value, lower.low_pct)
    if higher.better_pct is not None:
        assert lower.better_pct == -higher.better_pct
    assert unknown.better_pct is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6), samples)
def test_no_number_breaks_it(old: list[float], new: list[float]) -> None:
    (shown,) = grade_all([compared(tuple(old), tuple(new))], ["higher"])
    for value in (shown.change_pct, shown.p_value, shown.low_pct, shown.high_pct):
        assert value is None or math.isfinite(value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((1000.0,), (700.0,), Grade.NOT_TESTABLE),
        ((1000.0, 1001.0), (700.0,), Grade.NOT_TESTABLE),
        ((1000.0, 900.0, 1100.0), (990.0, 1050.0, 930.0), Grade.NOT_SIGNIFICANT),
        ((5.0, 5.0, 5.0), (5.0, 5.0, 5.0), Grade.NOT_SIGNIFICANT),
        ((5.0, 5.0, 5.0), (6.0, 6.0, 6.0), Grade.IMPROVEMENT),
        ((0.0, 0.0, 0.0), (6.0, 6.1, 6.2), Grade.IMPROVEMENT),
    ],
)
def test_grades(old: tuple[float, ...], new: tuple[float, ...], expected: Grade) -> None:
    assert grade(compared(old, new), "higher").verdict is expected


def test_a_change_from_zero_is_no_percentage() -> None:
    shown = grade(compared((0.0, 0.0, 0.0), (6.0, 6.1, 6.2)), "higher")
    assert (shown.change_pct, shown.better_pct, shown.low_pct, shown.high_pct) == (None, None, None, None)


def test_a_spread_that_was_not_told_can_not_be_tested() -> None:
    measurement = MeasurementData(
        "m", "", "unknown", "kpi", SampleSummary(100.0, None, 5), SampleSummary(90.0, None, 5)
    )
    assert grade(measurement, "higher") == Graded(Grade.NOT_TESTABLE, -10.0, -10.0, None)


def test_changes_are_measured_from_the_size_of_the_parent() -> None:
    assert change_pct(-10, -5) == 50  # it rose, though the quotient fell
    assert change_pct(0, 3) is None
    assert change_pct(2e-10, 41) is None
    assert better_pct(-12.0, "lower") == 12.0
    assert verdict_of(10, 20, "lower") is Verdict.REGRESSION
    assert verdict_of(10, 10, "lower") is Verdict.UNKNOWN


@pytest.mark.parametrize(("count", "tolerance"), [(3, 0.35), (8, 0.25), (300, 0.15)])
def test_the_interval_is_the_percentile_bootstrap(count: int, tolerance: float) -> None:
    from scipy.stats import bootstrap

    random = np.random.default_rng(7)
    for sign in (1, -1):
        old, new = (sign * random.normal(mean, 4.0, count) for mean in (100.0, 93.0))
        ours = grade(compared(tuple(old.tolist()), tuple(new.tolist())), "higher")

        def change(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
            return 100 * (b.mean(axis) - a.mean(axis)) / np.abs(a.mean(axis))

        theirs = bootstrap((old, new), change, method="percentile", n_resamples=9999, rng=1).confidence_interval
        width = theirs.high - theirs.low
        assert ours.low_pct == pytest.approx(theirs.low, abs=tolerance * width)
        assert ours.high_pct == pytest.approx(theirs.high, abs=tolerance * width)


def test_the_interval_of_the_same_samples_is_always_the_same() -> None:
    alone = grade(compared(GOOD, BAD), "higher")
    three = [compared((1.0, 2.0, 4.0), (3.0, 4.0, 5.0)), compared(GOOD, BAD), compared(BAD, GOOD)]
    among = grade_all(three, ["higher"] * 3)[1]
    assert (alone.low_pct, alone.high_pct) == pytest.approx((among.low_pct, among.high_pct))


def test_an_effect_is_told_in_times_the_usual_noise() -> None:
    assert effect(-12.0, 3.0) == pytest.approx(4.0)
    assert effect(-12.0, None) is None
    assert effect(-12.0, 0.0) is None
    assert effect(None, 3.0) is None
    assert effect(1e300, 1e-300) is None


@given(samples, samples)
def test_ranges_overlap_when_neither_side_is_wholly_above_the_other(old: list[float], new: list[float]) -> None:
    apart = all(a < b for a in old for b in new) or all(a > b for a in old for b in new)
    assert overlap(old, new) is not apart


@given(samples)
def test_a_side_is_what_numpy_says(values: list[float]) -> None:
    side = summarise(values)
    assert side.mean == pytest.approx(float(np.mean(values)), abs=1e-6)
    assert side.stddev == pytest.approx(float(np.std(values)), abs=1e-6)


@pytest.mark.parametrize("new_mean", [850.0, 1000.0, 10_000.0])
def test_without_samples_the_interval_is_that_of_the_samples(new_mean: float) -> None:
    """Nearly: the bootstrap of the same samples is somewhat narrower, as it knows no Student."""
    random = np.random.default_rng(1)
    old, new = (tuple(random.normal(mean, 90, 40).tolist()) for mean in (1000.0, new_mean))
    sampled = grade(compared(old, new), "higher")
    summed = grade(MeasurementData("m", "", "higher", "headline", summarise(old), summarise(new), (), ()), "higher")
    assert summed.p_value == sampled.p_value
    widths = [
        end.high_pct - end.low_pct for end in (sampled, summed) if end.low_pct is not None and end.high_pct is not None
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    assert (summed.low_pct, summed.high_pct) == pytest.approx((sampled.low_pct, sampled.high_pct), abs=0.15 * widths[0])


# --- Corrected for how many were tested ---

tested = st.lists(st.none() | st.floats(0, 1), max_size=12)


@given(tested)
def test_the_share_of_false_discoveries_is_scipys(p_values: list[float | None]) -> None:
    from scipy.stats import false_discovery_control

    corrected = false_discovery(p_values)
    assert [p is None for p in corrected] == [p is None for p in p_values]
    known = [p for p in p_values if p is not None]
    theirs = false_discovery_control(known).tolist() if known else []
    assert [p for p in corrected if p is not None] == pytest.approx(theirs)


@given(tested)
def test_the_family_is_corrected_step_by_step(p_values: list[float | None]) -> None:
    """By Holm's own words: the smallest of n times n, the next one times n - 1, and none less than the one before."""
    corrected = family_wise(p_values)
    known = [p for p in p_values if p is not None]
    for p, ours in zip(p_values, corrected, strict=True):
        if p is None:
            assert ours is None
        else:
            steps = [smaller * sum(other >= smaller for other in known) for smaller in known if smaller <= p]
            assert ours == pytest.approx(min(1.0, max(steps)))


# --- How much of a change is certain ---


@pytest.mark.parametrize(
    ("change", "low", "high", "spread", "size"),
    [
        (None, None, None, None, 0.0),
        (math.inf, None, None, None, 0.0),
        (0.0, None, None, None, 0.0),
        (-50.0, None, None, None, -50.0),
        (50.0, None, None, None, 50.0),
        (50.0, None, None, 8.0, 42.0),
        (-5.0, None, None, 8.0, 0.0),
        (-5.0, None, None, 0.0, -5.0),
        (-50.0, -60.0, -40.0, 5.0, -40.0),  # the near end of the interval is nearer
        (-50.0, -52.0, -48.0, 5.0, -45.0),  # the spread takes more
        (50.0, 40.0, 60.0, None, 40.0),
        (50.0, None, 60.0, None, 50.0),  # half an interval says nothing
        (50.0, 40.0, None, None, 50.0),
        (-0.5, -0.9, -0.4, None, -0.4),
        (-50.0, -60.0, 1.0, None, 0.0),
        (-50.0, -60.0, 0.0, None, 0.0),
        (-100.0, None, None, None, -99.9999),  # of nothing left there is no logarithm
    ],
)
def test_how_much_of_a_change_is_certain(
    change: float | None, low: float | None, high: float | None, spread: float | None, size: float
) -> None:
    assert certain(change, low, high, spread) == pytest.approx(100 * abs(math.log(1 + size / 100)), rel=1e-3)


def test_half_weighs_as_much_as_double() -> None:
    assert certain(-50.0, None, None, None) == pytest.approx(certain(100.0, None, None, None))


# --- Numbers at the ends of what a float holds ---


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e-150, 1.0, 1e150, 1e160, 1e200])
def test_a_spread_whose_squares_do_not_fit_is_that_of_smaller_numbers(scale: float) -> None:
    side = summarise([3 * scale, 5 * scale, 10 * scale])
    assert (side.mean, side.n) == (pytest.approx(6 * scale), 3)
    assert side.stddev == pytest.approx(scale * math.sqrt(26 / 3))


def test_what_overflows_has_an_infinite_spread() -> None:
    side = summarise([1.7e308, -1.7e308, 1.7e308])
    assert (side.stddev, side.n) == (math.inf, 3)
    assert summarise([2.5] * 3) == SampleSummary(2.5, 0.0, 3)
    tiny = summarise([1.0, 1.0 + 2**-52, 1.0])
    assert tiny.mean == pytest.approx(1.0)
    assert tiny.n == 3


def test_students_quantile_is_that_of_the_tables() -> None:
    assert [round(t_quantile(freedom), 3) for freedom in (1, 2, 10, 100)] == [12.706, 4.303, 2.228, 1.984]


def test_the_interval_of_means_and_spreads_is_that_of_welchs_t() -> None:
    """The parent's mean is uncertain, too: the change is one from samples that have the culprit's size."""
    from scipy.stats import ttest_ind

    old, new = [1000.0, 1010.0, 985.0, 1004.0, 995.5], [850.0, 905.0, 870.0]
    side, other = summarise(old), summarise(new)
    (graded,) = grade_all([MeasurementData("m", "", "higher", "kpi", side, other, (), ())], ["higher"])
    assert graded.p_value == pytest.approx(float(ttest_ind(old, new, equal_var=False).pvalue))
    scaled = [value * other.mean / side.mean for value in old]
    ends = ttest_ind(new, scaled, equal_var=False).confidence_interval(0.95)
    half, change = 100 * float(ends.high - ends.low) / 2 / side.mean, 100 * (other.mean / side.mean - 1)
    assert (graded.low_pct, graded.high_pct) == pytest.approx((change - half, change + half))


def test_a_change_at_the_level_is_not_significant() -> None:
    assert grade_of(1.0, 2.0, 0.05, "higher") is Grade.NOT_SIGNIFICANT
    assert grade_of(1.0, 2.0, 0.0499, "higher") is Grade.IMPROVEMENT
    assert change_pct(5.0, math.inf) is None
    assert change_pct(math.inf, 5.0) is None


def test_two_samples_on_each_side_have_an_interval() -> None:
    for old, new, has_one in (((1.0, 2.0), (3.0, 4.0), True), ((1.0,), (3.0, 4.0), False), ((1.0, 2.0), (3.0,), False)):
        assert (grade(compared(old, new), "higher").low_pct is not None) is has_one


def test_as_many_runs_as_a_file_may_state_cost_no_more() -> None:
    many = list(range(50_000))
    assert share_against(many, many) == 0.5
    assert least_p(10**9, 10**9) == 0.0
    assert least_p(2, 10**6) < 1e-11
