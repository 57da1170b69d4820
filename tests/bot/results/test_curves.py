"""Results onto curves: bisections with their steps, kernels, a CSV of measured commits; once each, in any order."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import perf_release_result
from bot.results.recognise import read_path
from bot.results.storage import extend_curves
from bot.results.values import RejectedInput
from tests.support.world import World
from tracker.domain.curves import CurvePoint
from tracker.models import BisectResult, Curve, CurveChange, CurveSegment, Machine, Metric, ReleaseResult, Scenario
from tracker.services import corrections, curves
from tracker.services.curve_changes import refresh_stale

HEAD = "commit,date,machine,suite,metric,value,unit,direction,param:threads"


def csv_of(levels: Sequence[float], runs: int = 3, direction: str = "higher") -> str:
    """A commit a day."""
    rng = random.Random(4)
    rows = [
        f"{day + 1:040x},2026-03-{1 + day // 24:02}T{day % 24:02}:00:00Z,m1,will-it-scale,wis.ops,"
        f"{level * (1 + rng.gauss(0, 0.005))!r},1/s,{direction},16"
        for day, level in enumerate(levels)
        for _ in range(runs)
    ]
    return "\n".join([HEAD, *rows, ""])


@pytest.fixture
def key(db: None) -> curves.CurveKey:
    metric = Metric.objects.create(name="wis.ops", direction="higher")
    scenario = Scenario.objects.create(key="wis|", suite="wis")
    return metric.pk, scenario.pk, Machine.objects.create(name="m1").pk


def test_a_csv_of_commits_becomes_a_curve_with_its_change(world: World, tmp_path: Path) -> None:
    path = tmp_path / "commits.csv"
    path.write_text(csv_of([1000.0] * 20 + [870.0] * 12))
    call_command("ingest", str(path))
    curve = Curve.objects.get()
    assert (curve.metric.name, curve.machine.name, curve.points, curve.samples) == ("wis.ops", "m1", 32, 96)
    assert str(curve.scenario) == "will-it-scale, threads=16"
    change = CurveChange.objects.get()
    assert (change.before, change.build, change.is_regression) == (f"{20:040x}", f"{21:040x}", True)
    assert change.change_pct_raw == pytest.approx(-13, abs=0.6)
    assert curve.noise["run_pct"] == pytest.approx(0.5, abs=0.2)
    assert len(curve.outline.split(",")) == 32
    call_command("ingest", str(path))  # the same again
    curve.refresh_from_db()
    assert (curve.points, ReleaseResult.objects.count(), CurveChange.objects.count()) == (32, 32, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("commit,date,machine,suite,metric,value,direction,colour\n", "line 1: expected the columns"),
        (HEAD + "\n", "expected at least one row"),
        (HEAD + "\n" + "a,2026-03-01T00:00:00Z,m,s,t,x,,higher,\n", "line 2: expected a number, found 'x'"),
        (HEAD + "\n" + "a,2026-03-01T00:00:00Z,m,s,t,inf,,higher,\n", "line 2: expected a number, found 'inf'"),
        (HEAD + "\n" + "a,2026-03-01T00:00:00Z,m,s,t,1\n", "line 2: expected 9 values"),
        (HEAD + "\n" + "a,,m,s,t,1,,higher,\n", "line 2: expected a value for date"),
        (HEAD + "\n" + "a,yesterday,m,s,t,1,,higher,\n", "/created_at"),
        (HEAD + "\n" + "a,2026-03-01T00:00:00Z,m,s,t,1,,sideways,\n", "/measurements/0/direction"),
        (HEAD + "\n" + '"a,2026\n', "expected CSV"),
    ],
)
def test_a_fault_has_its_place(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    (answer,) = read_path(path)
    assert answer.rejection is not None
    assert why in str(answer.rejection)


@given(st.text(max_size=200))
def test_junk_below_the_header_is_refused_or_read(text: str) -> None:
    with suppress(RejectedInput):
        assert all(value["measurements"] for value in perf_release_result.parse_csv(HEAD + "\n" + text, "x"))


def test_a_bisection_puts_its_sides_and_steps_on_the_curve(world: World) -> None:
    steps = [{"sha": f"{n:040x}", "verdict": verdict, "samples": [level, level]} for n, verdict, level in
             ((1, "good", 100.0), (2, "bad", 80.0), (3, "skip", 1.0))]  # fmt: skip
    value = world.result("b" * 40, "mm: a")
    value["bisect"] = {**value.get("bisect", {}), "steps": steps}
    world.ingest(value)
    assert extend_curves(world.now) == 1
    assert extend_curves(world.now) == 0
    headline = next(each for each in value["measurements"] if each["role"] == "headline")
    curve = Curve.objects.get(metric__name=headline["metric"])
    found = [(each.build, each.samples) for each in curves.load(curve)]
    good, bad = value["parent"]["sha"], value["first_bad"]["sha"]
    assert [build for build, _ in found] == [f"{1:040x}", good, bad, f"{2:040x}"]
    assert dict(found)[bad] == tuple(headline["bad"]["samples"])
    monitors = [each["metric"] for each in value["measurements"] if each["role"] == "monitor"]
    assert not Curve.objects.filter(metric__name__in=monitors).exists()


def test_a_result_that_can_t_be_drawn_stops_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A commit of the year 1 has no second before it."""
    first, second = world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b", id="second")
    world.ingest(first, second)
    row = BisectResult.objects.order_by("pk")[0]
    row.payload = row.payload.replace('"steps"', '"steps_"')
    value = json.loads(row.payload)
    value["first_bad"]["date"] = value["parent"]["date"] = "0001-01-01T00:00:00Z"
    BisectResult.objects.filter(pk=row.pk).update(payload=json.dumps(value))
    assert extend_curves(world.now) == 2
    assert "is on no curve" in caplog.text
    assert {each.source for curve in Curve.objects.all() for each in curves.load(curve)} == {f"result {row.pk + 1}"}


def test_what_was_derived_is_derived_again(world: World) -> None:
    world.ingest(*[world.result(f"{n:040x}", "mm: a", id=f"r{n}") for n in range(1, 4)])
    extend_curves(world.now)
    before = sorted(map(tuple, CurveSegment.objects.values_list("curve__metric__name", "points")))
    Curve.objects.all().delete()
    BisectResult.objects.update(on_curves=False)
    extend_curves(world.now)
    assert sorted(map(tuple, CurveSegment.objects.values_list("curve__metric__name", "points"))) == before


@pytest.mark.parametrize("size", [1, 7, 400])
def test_points_in_any_order_and_pieces_make_one_curve(world: World, key: curves.CurveKey, size: int) -> None:
    every = [
        CurvePoint(world.now + timedelta(minutes=n), f"{n:040x}", (float(n), n + 0.5), f"result {n}")
        for n in range(1300)
    ]
    shuffled = every if size == 400 else random.Random(size).sample(every, 300)
    for start in range(0, len(shuffled), size):
        curves.add({key: shuffled[start : start + size]})
    curve = Curve.objects.get()
    assert curves.load(curve) == sorted(shuffled, key=lambda each: each.key)
    assert (curve.points, curve.samples) == (len(shuffled), 2 * len(shuffled))
    assert (curve.first_at, curve.last_at) == (min(each.at for each in shuffled), max(each.at for each in shuffled))
    assert all(each.points <= 1.5 * curves.POINTS for each in curve.segments.all())
    middle = every[100].at
    assert curves.load(curve, since=middle) == sorted((e for e in shuffled if e.at >= middle), key=lambda e: e.key)
    assert curves.load(curve, until=middle) == sorted((e for e in shuffled if e.at < middle), key=lambda e: e.key)


def test_adding_takes_a_constant_number_of_queries(
    world: World, key: curves.CurveKey, django_assert_max_num_queries: Any
) -> None:
    metric, scenario, _ = key
    machines = [Machine.objects.create(name=f"x{n}").pk for n in range(80)]
    points = {(metric, scenario, machine): [CurvePoint(world.now, "a", (1.0,), "x")] for machine in machines}
    with django_assert_max_num_queries(12):
        curves.add(points)
    assert Curve.objects.count() == 80


def test_looking_at_many_curves_takes_a_constant_number_of_queries(
    world: World, key: curves.CurveKey, django_assert_max_num_queries: Any
) -> None:
    metric, scenario, _ = key
    machines = [Machine.objects.create(name=f"x{n}").pk for n in range(80)]
    for level, days in ((100.0, range(20)), (80.0, range(20, 30))):
        points = [CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (level,), "x") for n in days]
        curves.add({(metric, scenario, machine): points for machine in machines})
        with django_assert_max_num_queries(14):
            assert refresh_stale(world.now) == 80
    assert CurveChange.objects.count() == 80


@pytest.mark.parametrize("later", [0, 1500])  # builds since the change: a refresh looks at the newest ones
def test_a_direction_that_is_set_later_says_what_a_change_is(
    world: World, key: curves.CurveKey, later: int, django_capture_on_commit_callbacks: Any
) -> None:
    metric = Metric.objects.filter(pk=key[0])
    metric.update(direction="unknown")
    levels = enumerate([100.0] * 20 + [80.0] * (8 + later))
    points = [CurvePoint(world.now + timedelta(hours=n), f"{n:040x}", (at, at * 1.001), "x") for n, at in levels]
    for part in (points[:28], points[28:]):
        curves.add({key: part} if part else {})
        refresh_stale(world.now)
    assert CurveChange.objects.get().is_regression is None
    for direction, expected in (("higher", True), ("lower", False), ("unknown", None)):
        metric.update(direction=direction)
        with django_capture_on_commit_callbacks(execute=True):
            corrections.regrade(list(metric))
        assert CurveChange.objects.get().is_regression is expected


def test_a_change_that_more_builds_deny_goes(world: World, key: curves.CurveKey) -> None:
    def day(n: int, level: float) -> CurvePoint:
        return CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (level, level * 1.001), "x")

    curves.add({key: [day(n, 100.0 if n < 20 else 80.0) for n in range(28)]})
    refresh_stale(world.now)
    assert CurveChange.objects.get().is_regression
    curves.add(
        {key: [CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (100.0,) * 9, "y") for n in range(20, 28)]}
    )
    refresh_stale(world.now)
    assert not CurveChange.objects.exists()
    assert not Curve.objects.filter(stale=True).exists()


def test_one_hostile_curve_stops_no_other(world: World, key: curves.CurveKey) -> None:
    """Its noise would be infinite, which no database stores."""
    metric, scenario, _machine = key
    other = (metric, scenario, Machine.objects.create(name="sound").pk)
    odd = [CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (1e-100, 1e-100, 1e60), "x") for n in range(6)]
    sound = [CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (100.0, 101.0), "x") for n in range(6)]
    curves.add({key: odd, other: sound})
    assert refresh_stale(world.now) == 2
    assert refresh_stale(world.now) == 0
    assert [bool(each.noise) for each in Curve.objects.order_by("machine__name")] == [False, True]


def test_what_comes_newest_first_makes_few_segments(world: World, key: curves.CurveKey) -> None:
    for n in reversed(range(40)):
        curves.add({key: [CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (100.0 if n < 20 else 80.0,), "x")]})
    refresh_stale(world.now)
    curve = Curve.objects.get()
    assert (curve.segments.count(), curve.points, len(curves.recent(curve))) == (1, 40, 40)
    assert CurveChange.objects.get().build == f"{20:040x}"


def test_the_same_points_again_add_nothing(world: World, key: curves.CurveKey) -> None:
    """Times are stored to the second."""
    for _ in range(2):
        curves.add({key: [CurvePoint(world.now + timedelta(microseconds=500_000), "a", (1.0, 2.0, 3.0), "x")]})
    assert (Curve.objects.get().points, Curve.objects.get().samples) == (1, 3)


def test_an_old_change_stays_when_the_builds_that_are_looked_at_move_on(world: World, key: curves.CurveKey) -> None:
    def day(n: int) -> CurvePoint:
        return CurvePoint(world.now + timedelta(days=n), f"{n:040x}", (100.0 if n < 503 else 80.0,), "x")

    curves.add({key: [day(n) for n in range(1000)]})
    refresh_stale(world.now)
    change = CurveChange.objects.get()
    for start in range(1000, 1500, 100):
        curves.add({key: [day(n) for n in range(start, start + 100)]})
        refresh_stale(world.now)
    assert CurveChange.objects.get() == change
