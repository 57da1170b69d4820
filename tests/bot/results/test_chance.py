"""How often chance alone makes a mail, and how often a true change among noise is found: both rates, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.results import values
from bot.results.formats.checks import measurement
from bot.results.grading import GradedMeasurement, _corrected_for_number, headline_of, why_held
from bot.results.values import CommitInfo, MachineInfo, MeasurementData, Result
from tracker.domain.curves import CurveNoise
from tracker.domain.events import Grade
from tracker.domain.statistics import ALPHA, Array, Graded, change_pct, false_discovery, family_wise, grade_all
from tracker.models import Machine, Metric

SUITE, METRICS = "vm-scan", 73
CULPRIT = CommitInfo("c" * 40, author_email="dana@dev.example")


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The 95% interval of a share (E. B. Wilson, 1927)."""
    z, share = 1.96, hits / trials
    centre, width = share + z * z / (2 * trials), z * math.sqrt(share * (1 - share) / trials + (z / trials / 2) ** 2)
    return (centre - width) / (1 + z * z / trials), (centre + width) / (1 + z * z / trials)


def of_two_modes(random: np.random.Generator, size: tuple[int, ...]) -> Array:
    return random.choice([930.0, 1070.0], size) + random.standard_normal(size)


def counts(random: np.random.Generator, size: tuple[int, ...]) -> Array:
    return random.poisson(1.5, size).astype(float)


def rounded(random: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.round(random.normal(20, 0.6, size))


Shape = Callable[[np.random.Generator, tuple[int, ...]], Array]


def results(
    seed: int, number: int, runs: int, true_change: float = 0.0, others: Shape | None = None, metrics: int = METRICS
) -> Iterator[list[GradedMeasurement]]:
    """Yield graded results: each metric with noise of 0.5 to 4 %, the key metric with a true change, if any. `others`:
    how the others spread instead; `metrics`: how many there are.

    As a lab would that looks for what moved most, each names that as its headline.
    """
    random = np.random.default_rng(seed)
    names = [f"{SUITE}.ops_per_sec", *(f"{SUITE}.part{n}_per_sec" for n in range(1, metrics))]
    for _ in range(number):
        means, noise = random.uniform(1e3, 1e5, metrics), random.uniform(0.005, 0.04, metrics)
        sides = means[:, None, None] * (1 + noise[:, None, None] * random.standard_normal((metrics, 2, runs)))
        sides[0, 1] *= 1 + true_change
        if others:
            sides[1:] = others(random, sides[1:].shape)
        measured: list[MeasurementData] = [
            measurement(name, "", side[0].tolist(), side[1].tolist(), name)
            for name, side in zip(names, sides, strict=True)
        ]
        moved = max(range(metrics), key=lambda n: abs(change_pct(measured[n].old.mean, measured[n].new.mean) or 0.0))
        grades = grade_all(measured, ["higher"] * metrics)
        roles = ["headline" if number == moved else "kpi" for number in range(metrics)]
        yield _corrected_for_number(list(map(graded, measured, grades, roles)), SUITE)


def graded(data: MeasurementData, grade: Graded, role: str) -> GradedMeasurement:
    metric = Metric(name=data.metric, direction="higher")
    return GradedMeasurement(replace(data, role=role, direction="higher"), metric, (0, 0, 0), grade, None)


def is_mailed(measured: list[GradedMeasurement]) -> bool:
    run = values.TestRun(SUITE, {}, MachineInfo("m1"), tuple(entry.data for entry in measured))
    result = Result(
        "lab",
        "1",
        None,
        "conclusive",
        "linus",
        "",
        "",
        CULPRIT,
        CULPRIT,
        CULPRIT,
        CULPRIT,
        "",
        runs=(run,),
        payload="{}",
        format="x",
    )
    return not list(why_held(result, measured, "dana@dev.example", None, {"m1": Machine(name="m1")}))


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3, *(pytest.param(runs, marks=pytest.mark.long) for runs in (5, 8))])
def test_chance_alone_makes_hardly_a_mail(runs: int) -> None:
    """At most 2.5 % of 2,000 results in which nothing changed."""
    mailed = sum(map(is_mailed, results(runs, 2000, runs)))
    low, high = wilson(mailed, 2000)
    print(f"{runs} runs: {mailed} of 2,000 results of chance make a mail ({low:.2%} to {high:.2%})")
    assert high <= 0.025


@pytest.mark.parametrize("shape", [of_two_modes, counts, rounded])
@pytest.mark.parametrize("runs", [2, 3, 5])
def test_modes_and_counts_make_hardly_a_mail(shape: Shape, runs: int) -> None:
    """Runs that fall into one mode by luck look certain to Welch's test; so do two equal counts."""
    assert sum(map(is_mailed, results(runs, 40, runs, others=shape))) <= 2


@pytest.mark.parametrize("metrics", [6, 9])
def test_modes_of_a_few_metrics_make_hardly_a_mail(metrics: int) -> None:
    """With few metrics as with many, the lab may have named the one that moved most."""
    mailed = sum(map(is_mailed, results(metrics, 400, 3, others=of_two_modes, metrics=metrics)))
    assert mailed <= 400 * 0.025
    changed = list(results(metrics, 20, 5, true_change=-0.3, metrics=metrics))
    assert sum(map(is_mailed, changed)) == len(changed), "a true change is kept"


def test_a_change_of_a_monitor_alone_is_held() -> None:
    """What the machine did beside the benchmark is no regression by itself."""
    random = np.random.default_rng(1)
    sides = [random.normal(mean, 1, 5).tolist() for mean in (100, 140)]
    data = measurement("vmstat.system.cs", "", *sides, "vmstat.system.cs")
    (grade,) = grade_all([data], ["lower"])
    entry = replace(graded(data, grade, "headline"), metric=Metric(name="vmstat.system.cs", direction="lower"))
    assert not is_mailed(_corrected_for_number([entry], SUITE))


def test_many_runs_of_a_small_change_make_a_mail() -> None:
    """Of twenty runs a side, some overlap, though the change is five standard errors and more."""
    assert sum(map(is_mailed, results(20, 40, 20, true_change=-0.08))) >= 35


def test_a_change_within_the_usual_noise_is_held() -> None:
    [measured] = results(7, 1, 8, true_change=-0.2)
    assert is_mailed(measured)
    usual = CurveNoise(run_pct=30.0, build_pct=30.0, modes_pct=None, runs=80, builds=20)
    assert not is_mailed([replace(entry, noise=usual) for entry in measured])


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, pytest.param(8, marks=pytest.mark.long)])
def test_a_true_change_of_the_key_metric_is_kept(runs: int) -> None:
    """It is the headline, and a regression, in at least 98 % of 1,000 results in which the key metric lost 10 % and
    nothing else changed. Some are held all the same, mostly since the samples of both sides overlap.
    """
    kept = mailed = 0
    for measured in results(100 + runs, 1000, runs, true_change=-0.10):
        headline = headline_of(measured)
        if headline.data.metric == f"{SUITE}.ops_per_sec" and headline.graded.verdict is Grade.REGRESSION:
            kept += 1
            mailed += is_mailed(measured)
    low, high = wilson(kept, 1000)
    print(f"{runs} runs: {kept} of 1,000 true changes are the headline ({low:.1%} to {high:.1%}); {mailed} make a mail")
    assert kept >= 980


P = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=80)


@given(P)
def test_a_correction_only_ever_makes_less_of_it(ps: list[float | None]) -> None:
    for correct in (false_discovery, family_wise):
        corrected = correct(ps)
        assert [p is None for p in corrected] == [p is None for p in ps]
        pairs = [(p, q) for p, q in zip(ps, corrected, strict=True) if p is not None and q is not None]
        assert all(p - 1e-12 <= q <= 1 for p, q in pairs)
        assert [q for _, q in sorted(pairs)] == sorted(q for _, q in pairs), "the order stays"


@given(P)
def test_of_what_passes_holm_all_passes_benjamini_and_hochberg(ps: list[float | None]) -> None:
    fdr, fwer = false_discovery(ps), family_wise(ps)
    assert all(q is not None and q < ALPHA for q, p in zip(fdr, fwer, strict=True) if p is not None and p < ALPHA)
