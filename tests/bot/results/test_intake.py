"""The order and the batches in which results arrive do not change the outcome; bad results harm no others."""

from __future__ import annotations

import json
import os
import random
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from bot.notifications.report import compose_due
from bot.results.formats.benchmark import _Pairs
from bot.results.intake import read_files, take_dropped
from bot.results.values import RejectedInput
from tests.support.outbox import act
from tests.support.world import World
from tracker.models import BisectResult, Commit, Event, Finding, Metric, OutgoingMail, Report, Suggestion
from tracker.services import corrections

C, D, F = "c" * 40, "d" * 40, "f" * 40
FIXES = {"tag": "Fixes", "value": f'{C[:12]} ("mm: a")'}


def result_data(world: World, sha: str, name: str, old: float, new: float, **more: Any) -> dict[str, Any]:
    one = world.result(sha, f"mm: {sha[0]}", id=name, **more)
    one["measurements"][0] |= {
        "good": {"samples": [old, old + 5, old - 5]},
        "bad": {"samples": [new, new + 5, new - 5]},
    }
    return one


def fix(world: World, name: str, old: float, new: float, **more: Any) -> dict[str, Any]:
    one = result_data(world, F, name, old, new, created_at=(world.now + timedelta(days=1)).isoformat(), **more)
    one["first_bad"]["trailers"] = [FIXES]
    return one


def final_state() -> tuple[Any, ...]:
    """Everything that people may see, however it came about."""
    return (
        sorted(Report.objects.values_list("culprit__sha", "verdict", "state", "status", "held")),
        sorted(Finding.objects.values_list("report__culprit__sha", "machine__name", "headline", "change_pct_raw")),
        sorted(Event.objects.values_list("report__culprit__sha", "key")),
        sorted(BisectResult.objects.values_list("external_id", "held", "note")),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_one_batch_or_many_end_the_same(world: World, seed: int) -> None:
    rng = random.Random(seed)
    results = []
    for number in range(rng.randint(2, 7)):
        machine = {"id": f"lab7-m{rng.randint(1, 2)}", "cpus": 8}
        change = rng.choice([500, 700, 990, 1300])
        outcome = rng.choice(["conclusive", "conclusive", "conclusive", "not-reproduced", "inconclusive"])
        bad = {"sha": rng.choice("12") * 40, "describe": "v9.1-rc4"}
        more = {"machine": machine, "outcome": outcome, "bad": bad}
        if rng.random() < 0.3:
            results.append(fix(world, f"r{number}", 700, change, **more))
        else:
            at = world.now + timedelta(hours=rng.randint(0, 50))
            results.append(result_data(world, C, f"r{number}", 1000, change, created_at=at.isoformat(), **more))
    ends = []
    for several in (False, True):
        with transaction.atomic():
            for batch in [[each] for each in results] if several else [results]:
                world.ingest(*batch)
            ends.append(final_state())
            transaction.set_rollback(True)
    assert ends[0] == ends[1]


def test_a_culprit_and_its_fix_in_one_batch(world: World) -> None:
    world.ingest(result_data(world, C, "c", 1000, 700), fix(world, "f", 700, 1000))
    assert [(each.culprit.sha, each.state) for each in Report.objects.all()] == [(C, "fix_confirmed")]


def test_a_fix_is_judged_where_the_headline_was_measured(world: World) -> None:
    world.ingest(result_data(world, C, "c", 1000, 700))
    fixed = fix(world, "f", 700, 1000)
    still = {**fixed["measurements"][0], "metric": "vm-scan.other_per_sec", "role": "kpi"}
    still["bad"] = still["good"]
    fixed["measurements"].insert(0, still)
    world.ingest(fixed)
    assert Event.objects.get().kind == "fix_confirmed"


def test_a_fix_is_known_from_an_earlier_result_too(world: World) -> None:
    world.ingest(result_data(world, C, "c", 1000, 700), fix(world, "f", 700, 1000))
    without_trailers = fix(world, "f2", 700, 1000)
    del without_trailers["first_bad"]["trailers"]
    world.ingest(without_trailers)
    assert Report.objects.count() == 1
    assert Event.objects.filter(kind="fix_confirmed").count() == 2


def test_the_last_recheck_has_the_word(world: World) -> None:
    rechecks = [
        {"ref": "v9.1-rc4", "sha": "d" * 40, "state": "still-bad"},
        {"ref": "v9.1-rc3", "sha": "e" * 40, "state": "good"},
    ]
    world.ingest(result_data(world, C, "c", 1000, 700, bisect={"rechecks": rechecks}))
    assert Report.objects.get().state == "no_response"


def test_an_older_result_that_shows_nothing_closes_nothing(world: World) -> None:
    before = (world.now - timedelta(days=9)).isoformat()
    bad = {"sha": "3" * 40, "describe": "v9.0"}
    world.ingest(
        result_data(world, C, "c", 1000, 700),
        result_data(world, C, "old", 1000, 1000, created_at=before, outcome="not-reproduced", bad=bad),
    )
    assert not Event.objects.exists()


@pytest.mark.parametrize("order", [1, -1])
def test_a_regression_from_zero_is_the_worst(world: World, order: int) -> None:
    errors = result_data(world, C, "zero", 0, 0)
    errors["measurements"][0] |= {"direction": "lower", "metric": "vm-scan.errors", "bad": {"samples": [500, 501, 502]}}
    errors["measurements"][0]["good"] = {"samples": [0, 0, 0]}
    better = result_data(world, C, "better", 1000, 1100)
    world.ingest(*[errors, better][::order])
    report = Report.objects.get()
    assert (report.verdict, report.findings.get(headline=True).metric.name) == ("regression", "vm-scan.errors")


def test_only_the_run_that_was_bisected_leads(world: World) -> None:
    one = result_data(world, C, "c", 1000, 700)
    more = result_data(world, C, "x", 1000, 200, machine={"id": "lab7-m2", "cpus": 8})
    one["additional"] = [{key: more[key] for key in ("test", "machine", "measurements")}]
    world.ingest(one)
    assert Report.objects.get().findings.get(headline=True).machine.name == "lab7-m1"


def test_a_merge_stays_held_whatever_else_comes(world: World) -> None:
    merge = result_data(world, C, "merge", 1000, 700)
    merge["first_bad"]["is_merge"] = True
    world.ingest(merge, result_data(world, C, "other", 1000, 500, machine={"id": "lab7-m2", "cpus": 8}))
    assert Report.objects.get().held == "the culprit is a merge commit"


def test_the_same_patch_is_joined_through_any_of_its_commits(world: World) -> None:
    root = Commit.objects.create(sha="1" * 40, title="mm: c", patch_id="p")
    world.ingest(result_data(world, root.sha, "r", 1000, 700))
    Commit.objects.create(
        sha="2" * 40, title="mm: c", patch_id="p", patch_message_id="patch@dev.example", same_patch_as=root
    )
    Commit.objects.filter(pk=root.pk).update(title="mm: c")
    world.ingest(result_data(world, C, "c", 1000, 600, patch={"message_id": "<patch@dev.example>"}))
    assert Report.objects.count() == 1
    assert Commit.objects.get(sha=C).same_patch_as == root


def test_keys_that_look_alike_are_two_results(world: World) -> None:
    later = {"created_at": (world.now + timedelta(days=1)).isoformat(), "bad": {"sha": "4" * 40}}
    world.ingest(
        result_data(world, C, "c", 1000, 700),
        result_data(world, C, "x/y", 1000, 700, producer={"name": "a"}, **later),
        result_data(world, C, "y", 1000, 700, producer={"name": "a/x"}, **later),
    )
    # They are of other producers than the report's, so that a person decides.
    assert Suggestion.objects.filter(kind="still_there", rule="another_producer").count() == 2


def test_another_producer_adds_a_finding_and_no_more(world: World) -> None:
    one, other = {"producer": {"name": "lab-a"}}, {"producer": {"name": "lab-b"}}
    world.ingest(result_data(world, C, "a", 1000, 900, **one))
    report = Report.objects.get()
    before = (report.verdict, report.held, report.metric, report.change, report.state)
    rechecks = {"bisect": {"rechecks": [{"ref": "v9.2-rc1", "sha": "9" * 40, "state": "good"}]}}
    second = result_data(world, C, "b", 1000, 10, **other, **rechecks)
    second["measurements"][0]["metric"] = "other.ops"
    world.ingest(second)
    report.refresh_from_db()
    assert (report.verdict, report.held, report.metric, report.change, report.state) == before
    assert Finding.objects.filter(report=report).count() == 2
    assert Suggestion.objects.get().kind == "disappeared"
    world.ingest(result_data(world, C, "c", 1000, 800, **one, **rechecks))
    report.refresh_from_db()
    assert report.state == "disappeared", "its own producer may say so"


@pytest.mark.parametrize("first", ["lab-a", "lab-b"])
def test_no_lab_says_what_is_better_of_a_metric_that_the_table_knows(world: World, first: str) -> None:
    """Another lab measures it, too: its report keeps its verdict, and what contradicts the table is held."""
    plain = result_data(world, C, "a", 1000, 900, producer={"name": "lab-a"})
    turned = result_data(world, D, "b", 1000, 900, producer={"name": "lab-b"})
    turned["measurements"][0]["direction"] = "lower"
    for made in (plain, turned) if first == "lab-a" else (turned, plain):
        world.ingest(made)
    own, other = (Report.objects.get(culprit__sha=sha) for sha in (C, D))
    assert (own.verdict, own.held) == ("regression", "")
    assert "lower" in other.held


def test_no_lab_closes_what_mail_has_opened(world: World) -> None:
    """Nobody's report is any producer's to close: it is suggested."""
    world.ingest(result_data(world, C, "a", 1000, 900))
    report = Report.objects.get()
    Finding.objects.filter(report=report).update(result=None)  # as of a robot's mail
    rechecks = {"bisect": {"rechecks": [{"ref": "v9.2-rc1", "sha": "9" * 40, "state": "good"}]}}
    world.ingest(result_data(world, C, "b", 1000, 800, producer={"name": "lab-b"}, **rechecks))
    report.refresh_from_db()
    assert report.state != "disappeared"
    assert Suggestion.objects.get().kind == "disappeared"


def test_a_direction_frees_what_never_moved_far_enough(world: World) -> None:
    one = result_data(world, C, "c", 1000, 1001)
    Metric.objects.create(name="vm-scan.ops_per_sec", direction="unknown", direction_by="operator")
    world.ingest(one)
    metric = Metric.objects.get()
    metric.direction = "higher"
    metric.save()
    corrections.regrade([metric])
    report = Report.objects.get()
    assert report.verdict == "improvement"
    assert "no direction is set" not in report.held
    assert "but it is set to" not in report.held


# --- mail that waits ---


def composed(world: World) -> OutgoingMail:
    world.ingest(result_data(world, C, "c", 1000, 700))
    compose_due(world.settings, world.later())
    return OutgoingMail.objects.get()


def test_a_mail_about_to_change_can_not_be_approved(world: World) -> None:
    mail = composed(world)
    world.now -= timedelta(days=1)  # another clock must not matter
    world.ingest(result_data(world, C, "d", 1000, 400, machine={"id": "lab7-m2", "cpus": 8}))
    assert not act(mail, "approve")
    compose_due(world.settings, world.later())
    mail.refresh_from_db()
    assert mail.subject.endswith("-60.0% regression")
    assert act(mail, "approve")


def test_the_operators_headline_reaches_the_mail(world: World) -> None:
    mail = composed(world)
    world.ingest(result_data(world, C, "d", 1000, 1400, machine={"id": "lab7-m2", "cpus": 8}))
    corrections.set_headline(Finding.objects.get(headline=False))
    compose_due(world.settings, world.later())
    mail.refresh_from_db()
    assert mail.subject.endswith("40.0% improvement")


def test_what_nobody_should_be_told_any_more_is_held(world: World) -> None:
    mail = composed(world)
    gone = {"created_at": (world.now + timedelta(days=2)).isoformat(), "bad": {"sha": "4" * 40, "describe": "v9.1"}}
    world.ingest(result_data(world, C, "gone", 1000, 1000, outcome="not-reproduced", **gone))
    compose_due(world.settings, world.later())
    mail.refresh_from_db()
    assert mail.state == "held"
    assert "closed before any mail was sent: the regression has disappeared in v9.1" in mail.reason


# --- odd results ---


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("side", {"mean": 1, "stddev": 1, "n": 10**25}, "expected at most 1,000,000,000 runs"),
        ("metric", "m" * 9000, "metric: expected at most 500 characters"),
        ("machine", {"id": "m" * 9000, "cpus": 1}, "machine: expected at most 500 characters, found 9000"),
        ("tree", {"name": "t" * 9000, "branch": "b"}, "tree: expected at most 500 characters, found 9000"),
        ("producer", {"name": "p" * 9000}, "producer: expected at most 500 characters"),
        ("patch", {"message_id": "p" * 9000}, "patch Message-ID: expected at most 500 characters"),
    ],
)
def test_names_and_counts_have_an_end(world: World, field: str, value: Any, expected: str) -> None:
    from bot.results.values import RejectedInput

    one = result_data(world, C, "c", 1000, 700)
    if field in ("side", "metric"):
        one["measurements"][0]["good" if field == "side" else "metric"] = value
    else:
        one[field] = value
    with pytest.raises(RejectedInput, match=expected):
        world.ingest(one)


@pytest.mark.parametrize(
    "good",
    [
        {"mean": 1e-200, "stddev": 1, "n": 3},
        {"samples": [1e153, -1e153, 3e-5]},
        {"samples": [1e-170, 1.1e-170, 0.9e-170]},
        {"mean": 1, "n": 999_999_999},
        {"mean": -1e308, "stddev": 1e308, "n": 2},
    ],
)
def test_numbers_at_the_end_of_the_scale_are_taken(world: World, good: dict[str, Any]) -> None:
    one = result_data(world, C, "c", 1000, 700)
    one["measurements"][0]["good"] = good
    world.ingest(one, result_data(world, C, "d", 1000, 700, machine={"id": "lab7-m2", "cpus": 8}))
    assert BisectResult.objects.count() == 2
    json.dumps(list(Finding.objects.values_list("effect", "p_value", "low_pct")), allow_nan=False)


def test_what_breaks_one_file_leaves_the_next_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from bot.results import storage

    original = storage.store_new

    def fragile(results: Any, *rest: Any) -> None:
        if any(result.id == "a" for result in results):
            raise OverflowError("int too large")
        original(results, *rest)

    monkeypatch.setattr(storage, "store_new", fragile)
    drop = world.directory / "drop"
    drop.mkdir()
    for name, sha in (("a", C), ("b", "b" * 40)):
        (drop / f"{name}.json").write_text(json.dumps(result_data(world, sha, name, 1000, 700)))
        os.utime(drop / f"{name}.json", (1, 1))
    assert take_dropped(drop, [], world.now) == 1
    assert "the database can't store it: int too large" in (drop / "refused" / "a.json.reason").read_text()
    assert (drop / "done" / "b.json").exists()


def test_a_number_written_otherwise_is_the_same_result(world: World) -> None:
    one = result_data(world, C, "c", 1000, 700)
    world.ingest(one)
    one["measurements"][0]["good"]["samples"] = [1000.0, 1005.0, 995.0]
    (receipt,) = world.ingest(one)
    assert receipt.taken == "duplicate"


# --- inputs that brought others down once ---


def write_hostile_inputs(path: Any, good: dict[str, Any]) -> None:
    """Inputs of which each one must cost itself alone."""
    from tests.bot.results.formats.test_lkp import CULPRIT, NEW, OLD, PARENT, write_root

    (path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (path / "deeper.json").write_text("[" + "[" * 900 + "]" * 900 + "]")
    (path / "loop.json").symlink_to(path / "loop.json")
    os.mkfifo(path / "pipe.json")
    red = {**good, "test": {"suite": "vm-scan", "params": {"a\nb\x1b[31m": 5}}}
    (path / "control.json").write_text(json.dumps(red))
    (path / "long.json").write_text(json.dumps({"version": {"major": "9" * 1_000_000}}))
    (path / "empty.json").write_text("[]")
    write_root(path / "half", PARENT, {**OLD, "demo.a\ud800": [1, 2, 3]})
    write_root(path / "half", CULPRIT, {**NEW, "demo.a\ud800": [1, 2, 3]})
    write_root(path / "odd", PARENT, OLD)
    (write_root(path / "odd", CULPRIT, NEW) / "²").mkdir()


def test_each_hostile_input_costs_itself_alone(world: World) -> None:
    from bot.results.intake import take_in
    from bot.results.recognise import read_path

    top = world.directory / "hostile"
    top.mkdir()
    write_hostile_inputs(top, result_data(world, C, "red", 1000, 700))
    (top / "z.json").write_text(json.dumps(result_data(world, C, "z", 1000, 700)))
    answers = list(take_in(read_path(top), [], world.now))
    assert sorted(answer.result.id[:1] for answer in answers if answer.receipt and answer.result) == ["a", "z"]
    rejections = [str(answer.rejection) for answer in answers if answer.rejection]
    assert len(rejections) == 8
    assert all(rejection.isprintable() and len(rejection) < 1500 for rejection in rejections)
    expected = (
        "nested too deeply",
        "a symbolic link loop",
        "a pipe or a device",
        "\\x1b[31m",
        "lone surrogate",
        "an empty array",
    )
    for message in expected:
        assert any(message in rejection for rejection in rejections), message


def test_the_drop_directory_goes_on_past_each_of_them(world: World) -> None:
    drop = world.directory / "drop"
    drop.mkdir()
    write_hostile_inputs(drop, result_data(world, C, "red", 1000, 700))
    (drop / ("漢" * 83 + ".json")).write_text("{")
    (drop / "z.json").write_text(json.dumps(result_data(world, C, "z", 1000, 700)))
    for each in [drop, *drop.rglob("*")]:
        os.utime(each, (1, 1), follow_symlinks=False)
    assert take_dropped(drop, [], world.now) == 2
    assert [each.name for each in drop.iterdir() if each.name not in ("done", "refused")] == []
    assert len(list((drop / "refused").glob("*.reason"))) == 9


@pytest.mark.parametrize("field", ["sha", "tree", "metric", "email"])
def test_a_line_break_is_in_no_name(world: World, field: str) -> None:
    from bot.results.values import RejectedInput

    one = result_data(world, C, "c", 1000, 700)
    if field == "sha":
        one["first_bad"]["sha"] += "\n"
    elif field == "tree":
        one["tree"]["name"] += "\n"
    elif field == "metric":
        one["measurements"][0]["metric"] += "\n"
    else:
        one["first_bad"]["author"]["email"] = "a\r\nBcc: x@y.example"
    with pytest.raises(RejectedInput):
        world.ingest(one)


def test_a_parent_that_only_seemed_so_is_held(world: World) -> None:
    """A bisection across a merge: the last good commit need not be the culprit's parent, and a tree knows better."""
    from datetime import UTC, datetime

    from bot.git.inspection import CommitInspection
    from bot.results.formats import bisect_log
    from bot.results.storage import Receipt, take_all
    from tests.bot.results.formats.test_bisect_log import BAD, CSV, LOG

    result = bisect_log.parse({"log": LOG, "samples": CSV}, "in")
    moment = datetime(2026, 9, 1, tzinfo=UTC)
    seen = CommitInspection(BAD, ("9" * 40,), "mm: walk cold folios first", "Dana", "dana@dev.example", moment, ())
    (receipt,) = take_all([result], world.now, {BAD: seen})
    assert isinstance(receipt, Receipt)
    assert receipt.row.held == "aaaaaaaaaa is not a parent of the culprit in git"


@pytest.mark.parametrize("piece", [b'"\\', b"/*a", b"'\\", b"//", b'"a\n'])
def test_hostile_code_is_compared_in_no_time(piece: bytes) -> None:
    import time

    from bot.git.inspection import _code

    start = time.process_time()
    _code(piece * 50_000)
    assert time.process_time() - start < 2  # seconds; twenty, when it was quadratic


def test_large_inputs_take_time_by_their_size(world: World) -> None:
    """What is refused of a large result is found as fast as in a small one; many metrics are no square of them."""
    import time

    from bot.results.formats import lkp, perf_bisect_result
    from bot.results.values import RejectedInput

    one = result_data(world, C, "c", 1000, 700)
    one["measurements"][0]["good"]["samples"] = [1.0] * 1_000_000
    one["extra"] = 1
    start = time.process_time()
    with pytest.raises(RejectedInput, match="extra"):
        perf_bisect_result.parse(one, "in")
    matrix = {f"demo.m{number}": [1, 2, 3] for number in range(8000)}
    roots = {
        side: {"commit": sha, "job": {"testcase": "demo", "tbox_group": "m"}, "matrix": matrix}
        for side, sha in (("parent", "a" * 40), ("culprit", "b" * 40))
    }
    assert len(lkp.parse(roots, "in").runs[0].measurements) == 8000
    assert time.process_time() - start < 10  # seconds; minutes, when they were quadratic


def test_a_link_out_of_a_directory_of_benchmark_files_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("Time: 1.5\n")
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "x.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(RejectedInput, match="a symbolic link that leads out of"):
        read_files([runs])


def test_a_key_that_stands_twice_is_found_in_one_pass() -> None:
    pairs = [*((f"k{number}", 1) for number in range(9_998)), ("k7", 2)]
    start = time.process_time()
    for _ in range(20):
        assert _Pairs(pairs).twice == ["k7"]
    assert time.process_time() - start < 3  # seconds; thirty, when each key was counted by itself
