"""The performance index: computed by hand, by its properties, and on its pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from bot.results.storage import extend_curves
from tracker.charts import describe, index_chart
from tracker.domain.kernel_comparison import Cell
from tracker.domain.performance_index import Benchmark, BenchmarkMean, IndexPoint, at, params_text, read_params, series
from tracker.domain.statistics import SampleSummary, summarise
from tracker.models import BasketEntry, Commit, Curve, Measurement, Metric, Report, TextRevision
from tracker.pages import index as index_pages


def mean(value: float) -> Cell:
    return Cell(SampleSummary(value, None, 1))


def entry(name: str, weight: float = 1.0, direction: str = "higher") -> Benchmark:
    return Benchmark(name, (), direction, weight)


A, B, C = entry("a.ops", 2.0), entry("b.seconds", 1.0, "lower"), entry("c.ops", 1.0)


def measured(name: str, basket: Sequence[Benchmark], **values: Any) -> BenchmarkMean:
    """Values by the first letter of the benchmark: one, or a mapping from machine to value."""
    readings: dict[str, Mapping[str, Cell]] = {}
    for each in {item.key: item for item in (*basket, A, B, C)}.values():
        given_value = values.get(each.metric[0])
        if given_value is not None:
            by_machine = given_value if isinstance(given_value, dict) else {"m1": given_value}
            readings[each.key] = {machine: mean(float(value)) for machine, value in by_machine.items()}
    return BenchmarkMean(name, tuple(basket), readings)


def test_two_releases_by_hand() -> None:
    first = measured("v6.1", [A, B], a=100, b=10)
    second = measured("v6.2", [A, B], a=110, b=8)
    one, two = series([first, second])
    # 100 · exp((2 · ln(110/100) + 1 · -ln(8/10)) / 3)
    assert one.value == 100.0
    assert two.value == pytest.approx(100 * math.exp((2 * math.log(1.1) - math.log(0.8)) / 3))
    assert two.value == pytest.approx(114.788521, abs=1e-6)
    assert (two.matched, two.total, two.against) == (2, 2, "v6.1")
    by_key = {each.key: each for each in two.contributions}
    assert by_key["a.ops"].pct == pytest.approx(10.0)
    assert by_key["b.seconds"].pct == pytest.approx(25.0)  # 8 instead of 10 seconds: 1.25 times as fast
    assert by_key["a.ops"].share_pct == pytest.approx(66.667, abs=1e-3)
    assert sum(each.points for each in two.contributions) == pytest.approx(two.value - 100)


def test_machines_are_averaged_within_a_benchmark_first() -> None:
    first = measured("v6.1", [A, C], a={"m1": 100, "m2": 10, "m3": 1}, c=50)
    second = measured("v6.2", [A, C], a={"m1": 121, "m2": 10}, c=50)  # m3 is missing: two places match
    _, two = series([first, second])
    assert two.value == pytest.approx(100 * math.exp(2 * (math.log(1.21) / 2) / 3))
    assert two.contributions[0].setups == 2


def test_a_missing_benchmark_is_said_and_comes_back() -> None:
    first = measured("v6.1", [A, B, C], a=100, b=10, c=50)
    second = measured("v6.2", [A, B, C], a=110, c=50)
    third = measured("v6.3", [A, B, C], a=110, b=5, c=50)
    _, two, three = series([first, second, third])
    assert two.value == pytest.approx(100 * math.exp(2 * math.log(1.1) / 3))
    assert (two.matched, two.total, two.missing) == (2, 3, (("b.seconds", "not measured"),))
    assert three.value == pytest.approx(100 * math.exp((2 * math.log(1.1) + math.log(2)) / 4))
    assert (three.matched, three.against) == (3, "v6.1")


def test_a_zero_is_said_and_left_out() -> None:
    first = measured("v6.1", [A, C], a=100, c=50)
    zero = measured("v6.2", [A, C], a=110, c=0)
    negative = measured("v6.3", [A, C], a=110, c=-1)
    partly = measured("v6.4", [A, C], a={"m1": 110, "m2": 0}, c=50)
    _, two, three, four = series([first, zero, negative, partly])
    assert two.value == three.value == pytest.approx(110.0)
    assert two.missing == (("c.ops", "zero was measured"),)
    assert three.missing == (("c.ops", "a negative number was measured"),)
    assert four.missing == (("a.ops", "zero was measured in some setups, which are left out"),)
    assert four.matched == 2


def test_a_metric_without_a_direction_is_said() -> None:
    odd = replace(C, direction="unknown")
    _, two = series([measured("v6.1", [A, odd], a=1, c=1), measured("v6.2", [A, odd], a=1, c=9)])
    assert (two.value, two.matched) == (100.0, 1)
    assert two.missing == (("c.ops", "direction unknown"),)


def test_a_changed_basket_is_chained() -> None:
    """By hand: v6.2 with the old basket, v6.3 with the new one against v6.2, whose index takes the place of 100."""
    first = measured("v6.1", [A, B], a=100, b=10, c=50)
    second = measured("v6.2", [A, B], a=110, b=8, c=40)
    third = measured("v6.3", [A, C], a=110, b=1, c=60)
    fourth = measured("v6.4", [A, C], a=220, c=60)
    _, two, three, four = series([first, second, third, fourth])
    linked = 100 * math.exp((2 * math.log(1.1) - math.log(0.8)) / 3)
    assert two.value == pytest.approx(linked)
    assert three.value == pytest.approx(linked * math.exp((2 * math.log(1.0) + math.log(60 / 40)) / 3))
    assert three.against == "v6.2"
    assert four.value == pytest.approx(linked * math.exp((2 * math.log(2.0) + math.log(60 / 40)) / 3))
    assert four.against == "v6.2"


def test_a_changed_weight_moves_nothing_by_itself() -> None:
    heavy = replace(C, weight=100.0)
    kernels = [measured("v6.1", [A, C], a=1, c=1), measured("v6.2", [A, C], a=2, c=3)]
    same = measured("v6.3", [A, heavy], a=2, c=3)
    _, two, three = series([*kernels, same])
    assert two.value == three.value


def test_a_new_benchmark_counts_from_where_it_was_first_measured() -> None:
    first = measured("v6.1", [A, C], a=100)
    second = measured("v6.2", [A, C], a=110, c=50)
    third = measured("v6.3", [A, C], a=110, c=100)
    one, two, three = series([first, second, third])
    assert one.missing == (("c.ops", "not measured"),)
    assert two.missing == (("c.ops", "measured for the first time"),)
    assert two.value == pytest.approx(110.0)
    assert three.value == pytest.approx(110.0 * math.exp(math.log(2) / 3))


def test_a_missing_test_forgets_no_movement() -> None:
    """Reckoned by hand: B is missing where C is measured first, and has halved when it comes back."""
    kernels = [
        measured("v6.1", [A, B, C], a=100, b=100),
        measured("v6.2", [A, B, C], a=100, c=5),
        measured("v6.3", [A, B, C], a=100, b=50, c=5),
        measured("v6.4", [A, B, C], a=100, b=50, c=5),
    ]
    _, two, three, four = series(kernels)
    assert two.value == 100.0
    # B is lower-is-better: 50 instead of 100 is twice as good, with a weight of 1 of 4
    assert three.value == four.value == pytest.approx(100 * math.exp(math.log(2) / 4))


def test_one_kernel_of_another_kind_does_not_end_the_index() -> None:
    one, two, three, four = series(
        [measured("v6.1", [A, C], a=1), measured("v6.2", [A, C], c=5), measured("v6.3", [A, C], c=10),
         measured("v6.4", [A, C], a=3, c=10)]
    )  # fmt: skip
    assert (one.value, two.value) == (100.0, None)
    assert three.value == pytest.approx(200.0)
    assert four.value == pytest.approx(100 * math.exp((2 * math.log(3) + math.log(2)) / 3))
    assert four.against == "v6.1, v6.2"


def test_absurd_numbers_are_said(db: None) -> None:
    _, two = series([measured("v6.1", [A, C], a=1, c=1e-200), measured("v6.2", [A, C], a=1, c=1e200)])
    assert (two.value, two.missing) == (100.0, (("c.ops", "the measured value is out of range"),))


def test_nothing_in_common_is_no_index() -> None:
    empty, first = measured("v6.0", [A]), measured("v6.1", [A], a={"m1": 1})
    other, again = measured("v6.2", [A], a={"m2": 5}), measured("v6.3", [A], a={"m1": 2})
    none, one, two, three = series([empty, first, other, again])
    assert (none.value, one.value, two.value) == (None, 100.0, None)
    assert two.missing == (("a.ops", "measured for the first time"),)
    assert "the chain continues from the last index" in two.note
    assert three.value == pytest.approx(200.0)
    assert series([]) == []


def test_the_interval_covers_the_index_and_is_always_the_same() -> None:
    def sampled(name: str, *samples: float) -> BenchmarkMean:
        return BenchmarkMean(name, (A,), {"a.ops": {"m1": Cell(summarise(samples), samples)}})

    kernels = [sampled("v6.1", 100, 104, 97, 101), sampled("v6.2", 110, 113, 106, 111)]
    _, two = series(kernels)
    assert two.low is not None
    assert two.high is not None
    assert two.value is not None
    assert two.low < two.value < two.high
    assert two.low > 105
    assert two.high < 115
    assert series(kernels) == series(kernels)
    _, bare = series([measured("v6.1", [A], a=1), measured("v6.2", [A], a=2)])
    assert bare.low == bare.high == pytest.approx(200.0)  # without samples there is no spread


values = st.floats(1e-3, 1e6)
machine_values = st.dictionaries(st.sampled_from(["m1", "m2"]), values, max_size=2)
releases = st.lists(
    st.fixed_dictionaries({"a": machine_values, "b": machine_values, "c": machine_values}), min_size=1, max_size=4
)


def kernels_of(rows: Sequence[Mapping[str, Any]], factor: float = 1.0) -> list[BenchmarkMean]:
    kernels = []
    for number, each in enumerate(rows):
        scaled = {**each, "a": {machine: value * factor for machine, value in each["a"].items()}}
        kernels.append(measured(f"v6.{number}", [A, B, C], **{name: value for name, value in scaled.items() if value}))
    return kernels


@given(releases, st.floats(1e-3, 1e3))
def test_the_unit_of_a_benchmark_changes_nothing(rows: list[Mapping[str, Any]], factor: float) -> None:
    for plain, scaled in zip(series(kernels_of(rows)), series(kernels_of(rows, factor)), strict=True):
        assert (plain.value is None) == (scaled.value is None)
        assert plain.value is None or scaled.value == pytest.approx(plain.value, rel=1e-9)
        assert (plain.matched, plain.missing, plain.against) == (scaled.matched, scaled.missing, scaled.against)


@given(releases)
def test_every_benchmark_is_in_it_or_left_out(rows: list[Mapping[str, Any]]) -> None:
    for point in series(kernels_of(rows)):
        assert point.matched + len(point.missing) == point.total == 3
        assert (point.value is None) == (point.matched == 0)
        if point.contributions and point.value is not None:
            assert sum(each.share_pct for each in point.contributions) == pytest.approx(100)
        assert describe(point).startswith(point.name)
    index_chart(series(kernels_of(rows)))


def test_the_basket_of_a_release() -> None:
    old = Benchmark("a.ops", (), "higher", 1.0, "", "v6.3")
    new = Benchmark("a.ops", (), "higher", 3.0, "v6.4")
    late = Benchmark("c.ops", (), "higher", 1.0, "v6.4")
    assert [each.weight for each in at([new, replace(old, until="")], "v6.5")] == [3.0]  # it began later
    for version, expected in (
        ("v6.3", [1.0]),
        ("v6.3-rc2", [1.0]),
        ("v6.4-rc1", [3.0, 1.0]),
        ("v6.4", [3.0, 1.0]),
        ("v7.0", [3.0, 1.0]),
        ("mine", [3.0, 1.0]),
    ):
        assert [each.weight for each in at([old, new, late], version)] == expected, version


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("mode=process, test=a", (("mode", "process"), ("test", "a"))),
        ("test=a, mode=process", (("mode", "process"), ("test", "a"))),  # in one order, so that it is one benchmark
        ("cpus=0,,2, x=", (("cpus", "0,2"), ("x", ""))),
    ],
)
def test_parameters_as_people_write_them(text: str, found: Any) -> None:
    assert read_params(text) == found
    assert read_params(params_text(found)) == found


def test_a_gap_in_the_chart() -> None:
    def point(name: str, value: float | None) -> IndexPoint:
        return IndexPoint(name, value, value, value, 1, 1, "v6.1")

    drawn = index_chart([point("v6.1", 100.0), point("v6.2", 90.0), point("v6.3", None), point("v6.4", 95.0)])
    assert drawn
    assert [dot.name for dot in drawn.dots] == ["v6.1", "v6.2", "v6.4"]
    assert len(drawn.lines) == 1
    assert drawn.dots[1].y > drawn.dots[2].y > drawn.dots[0].y  # worse is lower
    assert index_chart([point("v6.1", 100.0)]) is None


# --- the pages ---


@pytest.fixture
def index(db: None, tmp_path: Path) -> None:
    """Three releases, two benchmarks on two machines."""
    results = []
    for number, (ops, seconds) in enumerate(((100, 10), (110, 10), (121, 8)), 1):
        for machine in ("m1", "m2"):
            base = {
                "schema": "perf-release-result/1",
                "producer": {"name": "lab"},
                "machine": {"id": machine, "cpus": 4},
            }
            headline = {"metric": "scan.ops", "unit": "ops/s", "direction": "higher", "role": "headline"}
            build = {"metric": "build.seconds", "unit": "s", "direction": "lower", "role": "headline"}
            results.append(
                {
                    **base,
                    "id": f"{number}{machine}",
                    "created_at": f"2026-0{number}-01T00:00:00Z",
                    "kernel": {"version": f"v6.{number}"},
                    "test": {"suite": "scan", "params": {}},
                    "measurements": [{**headline, "samples": [ops, ops + 1, ops - 1]}],
                    "additional": [
                        {
                            "test": {"suite": "build", "params": {"jobs": "8"}},
                            "machine": base["machine"],
                            "measurements": [{**build, "mean": seconds, "n": 3}],
                        }
                    ],
                }
            )
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    call_command("ingest", str(path), verbosity=0)


Queries = Callable[[int], Any]


def test_the_page_and_its_points(index: None, client: Client, django_assert_max_num_queries: Queries) -> None:
    with django_assert_max_num_queries(8):
        page = client.get("/index/").content.decode()
    # with equal weights: 100 · exp((ln 1.21 + ln 1.25) / 2)
    assert "v6.3: 123.0, 95% CI" in page
    assert 'href="/index/v6.3/#point"' in page
    with django_assert_max_num_queries(11):
        point = client.get("/index/v6.3/").content.decode()
    assert "2 of 2 benchmarks, chained from v6.1" in point
    assert "+21.0%" in point
    assert "+25.0%" in point
    assert 'aria-current="true"' in point
    assert client.get("/index/v9.9/").status_code == 404
    (_, _, last) = client.get("/index.json").json()["points"]
    assert (last["name"], last["matched"], round(last["value"], 1)) == ("v6.3", 2, 123.0)
    with django_assert_max_num_queries(7):
        assert client.get("/index/").content.decode() == page  # nothing is reckoned again


def test_a_point_names_the_tests_that_moved_it_with_their_curves(
    index: None, client: Client, django_assert_max_num_queries: Queries
) -> None:
    extend_curves(timezone.now())
    BasketEntry.objects.create(metric=Metric.objects.get(name="scan.ops"))
    with django_assert_max_num_queries(13):
        point = client.get("/index/v6.3/").content.decode()
    curves = [curve.pk for curve in Curve.objects.filter(metric__name="scan.ops")]
    assert len(curves) == 2
    assert all(f'href="/curve/{pk}/"' in point for pk in curves)
    tests = point.partition('id="tests"')[2].partition("</section>")[0]
    assert tests.count('<th scope="row"') == 2  # of the basket only
    assert "+10.0%" in tests
    compared = client.get("/compare/", {"of": ["v6.2", "v6.3"]}).content.decode()
    assert "4 tests of both kernels, by their headlines; 2 of them count in the" in compared
    assert "index-point" not in compared
    assert 'href="/index/v6.3/#tests"' in compared
    assert "by their headlines" not in client.get("/compare/", {"of": ["v6.3"]}).content.decode()


def test_a_single_run_is_flagged(index: None, client: Client) -> None:
    Measurement.objects.filter(kernel__name="v6.3", metric__name="build.seconds").update(runs=1)
    tests = client.get("/index/v6.3/").content.decode().partition('id="tests"')[2].partition("</section>")[0]
    assert tests.count("one run") == 2
    assert "Tests since" not in client.get("/index/v6.1/").content.decode()


def test_the_reports_that_explain_a_point(index: None, client: Client) -> None:
    for number, (metric, merged) in enumerate((("scan.ops", "v6.3"), ("scan.other", "v6.3"), ("scan.ops", "v6.2")), 1):
        culprit = Commit.objects.create(sha=f"{number}" * 40)
        columns = {
            "merged_release": merged,
            "suite": "scan",
            "metric": metric,
            "verdict": "improvement",
            "status": "merged",
        }
        Report.objects.create(
            culprit=culprit, tag=f"{number}" * 16, state="no_action", title=f"number {number}", **columns
        )
    point = client.get("/index/v6.3/").content.decode()
    assert point.index("number 1") < point.index("number 2")
    assert "number 3" not in point
    assert "another metric of the suite" in point


def test_comments_with_history(index: None, client: Client) -> None:
    comment = {"version": "v6.3", "text": "The **allocator** did it. <script>x</script>"}
    assert client.post("/index/comment/", comment).status_code == 302
    assert not TextRevision.objects.exists()  # he was led to the door
    lee, toni = (User.objects.create_user(name, f"{name}@lab.example", "x") for name in ("lee", "toni"))
    toni.groups.add(Group.objects.get(name="triager"))
    client.force_login(lee)
    assert client.post("/index/comment/", comment).status_code == 302
    page = client.get("/index/v6.3/").content.decode()
    assert "The <strong>allocator</strong> did it." in page
    assert "<script>x" not in page
    name = TextRevision.objects.get().name
    assert (
        client.post("/index/comment/", {**comment, "name": name, "text": "It was the *scheduler*."}).status_code == 302
    )
    page = client.get(f"/index/v6.3/?edit={name}").content.decode()
    assert "It was the <em>scheduler</em>." in page
    assert "The **allocator** did it." in page  # the history
    mia = User.objects.create_user("mia", "mia@lab.example", "x")
    client.force_login(mia)
    assert client.post("/index/comment/", {**comment, "name": name}).status_code == 403
    assert client.post("/index/comment/", {**comment, "version": "v77.77"}).status_code == 400
    assert client.post("/index/comment/", {**comment, "text": "x" * 4001}).status_code == 400
    assert client.post("/index/comment/", {**comment, "version": "x"}).status_code == 400
    assert client.post("/index/comment/", {**comment, "text": " "}).status_code == 400
    client.force_login(toni)
    assert client.post("/index/comment/", {**comment, "name": name, "text": "It was the scheduler."}).status_code == 302
    assert "edited by toni" in client.get("/index/v6.3/").content.decode()
    client.force_login(lee)  # it is his all the same
    assert client.post("/index/comment/", {**comment, "name": name, "text": ""}).status_code == 302
    assert "No comments yet." in client.get("/index/v6.3/").content.decode()
    assert TextRevision.objects.count() == 4  # nothing is ever lost


def test_the_weights_are_changed(index: None, client: Client) -> None:
    form = {"metric": ["scan.ops", "build.seconds", ""], "params": ["", "jobs=8", ""], "weight": ["3", "1", "1"]}
    form |= {"since": ["", "", ""], "until": ["", "", ""]}
    kim = User.objects.create_user("kim", "kim@lab.example", "x")
    client.force_login(kim)
    assert client.post("/index/basket/", form).status_code == 403
    kim.groups.add(Group.objects.get(name="operator"))
    assert client.post("/index/basket/", form).status_code == 302
    assert [(str(each), each.weight) for each in BasketEntry.objects.all()] == [
        ("scan.ops", 3.0),
        ("build.seconds (jobs=8)", 1.0),
    ]
    value = 100 * math.exp((3 * math.log(1.21) + math.log(1.25)) / 4)
    assert f"v6.3: {value:.1f}, 95% CI" in client.get("/index/").content.decode()
    page = client.get("/index/basket/").content.decode()
    late = client.post("/index/basket/", {**form, "weight": ["9", "1", "1"]})  # by who saw the first one
    assert (late.status_code, "the basket was changed in the meantime" in late.content.decode()) == (400, True)
    (form["seen"],) = re.findall(r'name="seen" value="(\d+)"', page)
    assert "+ scan.ops × 3" in page
    assert "- scan.ops × 1" in page
    for column, number, bad, why in (
        ("metric", 0, "no.such", "there are no measurements of"),
        ("weight", 0, "-1", "row 1: expected a weight"),
        ("weight", 1, "much", "row 2: could not convert"),
        ("since", 0, "later", "row 1: since: expected a version"),
        ("params", 1, "jobs", "row 2: expected comma-separated name=value pairs"),
        ("metric", 2, "scan.ops", "row 3: scan.ops × 1 is listed twice"),
    ):
        odd: dict[str, Any] = {name: list(cells) for name, cells in form.items() if name != "seen"}
        odd["seen"] = form["seen"]
        odd[column][number] = bad
        answer = client.post("/index/basket/", odd)
        assert answer.status_code == 400, bad
        assert why in answer.content.decode()
    assert client.post("/index/basket/", {**form, "weight": ["1"]}).status_code == 400
    assert Metric.objects.filter(name="scan.ops").exists()


def test_an_empty_house(db: None, client: Client) -> None:
    assert "Fewer than two releases have been measured" in client.get("/index/").content.decode()
    assert client.get("/index/basket/").status_code == 200


# --- What a reader is told ---


def point_of(name: str, value: float | None, low: float | None = None, high: float | None = None) -> IndexPoint:
    return IndexPoint(name, value, value if low is None else low, value if high is None else high, 3, 4, "v6.1")


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (
            *(101.23, 100.4, 102.04),
            "101.2 means that v6.3 performs 1.2% better than v6.1 in the weighted geometric mean of 3 benchmarks"
            " (95% CI of the index 100.4 to 102.0).",
        ),
        (
            *(99.5, 98.9, 100.1),
            "99.5 means that v6.3 performs 0.5% worse than v6.1 in the weighted geometric mean of 3 benchmarks"
            " (95% CI of the index 98.9 to 100.1; it includes 100, so this may be chance).",
        ),
        (
            *(100.01, None, None),
            "100.0 means that v6.3 performs as well as v6.1 in the weighted geometric mean of 3 benchmarks; single runs"
            " don't tell how much of it is chance.",
        ),
    ],
)
def test_a_sentence_says_what_the_index_means(value: float, low: float | None, high: float | None, said: str) -> None:
    points = [point_of("v6.1", 100.0), point_of("v6.2", None), point_of("v6.3", value, low, high)]
    assert index_pages.meaning(points) == said
    assert index_pages.meaning(points[:2]) == ""


def test_the_index_of_each_suite_stands_on_one_page(
    v5_6_loaded: None, db: None, client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(8):
        page = client.get("/index/suites/").content.decode()
    assert len(re.findall(r'<h2 id="suite-\d+">', page)) == 9
    assert "119.1 means that v5.6 performs 19.1% better than v5.5 in 1 benchmark" in page
    front = client.get("/index/").content.decode()
    assert "107.9 means that v5.6 performs 7.9% better than v5.5" in front
    assert "By the basket of all headline metrics." in front
    assert front.count('<td class="n">9.1%</td>') == 11  # weights


def test_a_point_opens_down_to_the_runs(v5_6_loaded: None, db: None, client: Client) -> None:
    row = Measurement.objects.filter(kernel__name="v5.6", role="headline").order_by("pk").first()
    assert row
    Measurement.objects.filter(pk=row.pk).update(samples=[91.0, 92.5, 90.5], runs=3, mean=91.333)
    page = client.get("/index/v5.6/").content.decode()
    assert "91, 92.5, 90.5</details>" in page
