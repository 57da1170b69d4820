"""Storing results: all or nothing, once, in few queries, with two concurrent workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection

from bot.notifications.report import compose_due
from bot.results import storage
from bot.results.formats import bisect_log, lkp, perf_bisect_result
from bot.results.intake import take_in
from bot.results.recognise import ADAPTERS, ResultDetails, details_of, read_path, reread
from bot.results.storage import ReadAgain, Receipt, Taken, read_again, take_all
from bot.results.values import Conflict, RejectedInput, Result
from tests.conftest import ROOT
from tests.support.world import World
from tracker.models import BisectResult, Commit, Finding, Metric, OutgoingMail, Report

# --- Storing results: all or nothing, once, in few queries, with two concurrent workers ---


def results(world: World, count: int, measurements: int = 1) -> list[Result]:
    data = []
    for number in range(count):
        one = world.result(f"{number + 1:040x}", f"mm: change {number}", id=f"r{number}")
        headline = one["measurements"][0]
        one["measurements"] += [
            {**headline, "metric": f"vm-scan.m{n}_per_sec", "role": "kpi"} for n in range(measurements - 1)
        ]
        data.append(one)
    file = world.directory / "many.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in data))
    return [each.result for each in read_path(file) if each.result]


def test_four_queries_a_result_are_many(world: World) -> None:
    """The budget is four a result, amortised; a batch of two hundred takes a few dozen for all of them."""
    many = results(world, 200, measurements=20)
    queries = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal queries
        queries += 1
        return execute(*arguments)

    with connection.execute_wrapper(count):
        take_all(many, world.now, {})
    assert Finding.objects.count() == 4000
    assert queries < 60
    queries = 0
    with connection.execute_wrapper(count):
        take_all([replace(each, id=f"again-{each.id}") for each in many], world.now, {})
    assert queries < 60  # further results for known culprits
    queries = 0
    with connection.execute_wrapper(count):
        take_all(many, world.now, {})
    assert queries < 10  # all known


def test_one_alone_takes_few_queries_too(world: World) -> None:
    (one,) = results(world, 1, measurements=20)
    queries = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal queries
        queries += 1
        return execute(*arguments)

    with connection.execute_wrapper(count):
        take_all([one], world.now, {})
    assert queries < 45


def test_a_batch_tells_of_each_in_its_order(world: World) -> None:
    one, two, three = results(world, 3)
    changed = replace(two, payload=two.payload.replace("change 1", "change one"))
    answers = take_all([one, two, two, changed, three], world.now, {})
    kinds = [each.taken if isinstance(each, Receipt) else type(each) for each in answers]
    assert kinds == [Taken.NEW, Taken.NEW, Taken.DUPLICATE, Conflict, Taken.NEW]
    conflict = answers[3]
    assert isinstance(conflict, Conflict)
    assert conflict.faults == (("/first_bad/subject", "differs"),)


def test_a_batch_that_fails_is_taken_one_by_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One result that the database can't hold harms none of the others."""
    many = results(world, 3)
    original = storage.store_new

    def hostile(batch: list[Result], *rest: Any) -> None:
        original(batch, *rest)
        if any(each.id == "r1" for each in batch):
            raise DataError("integer out of range\nmore words")

    monkeypatch.setattr(storage, "store_new", hostile)
    one, two, three = take_all(many, world.now, {})
    assert isinstance(one, Receipt)
    assert isinstance(three, Receipt)
    assert isinstance(two, RejectedInput)
    assert str(two) == "the database can't store it: integer out of range"
    assert sorted(BisectResult.objects.values_list("external_id", flat=True)) == ["r0", "r2"]
    assert Report.objects.count() == Finding.objects.count() == 2  # nothing half-written


def test_a_collision_with_another_worker_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    original = storage.store_new
    collisions = iter([IntegrityError("somebody made this machine"), None])

    def collide(*arguments: Any) -> None:
        original(*arguments)
        if error := next(collisions, None):
            raise error

    monkeypatch.setattr(storage, "store_new", collide)
    (answer,) = take_all(results(world, 1), world.now, {})
    assert isinstance(answer, Receipt)
    assert answer.taken is Taken.NEW
    assert (BisectResult.objects.count(), Finding.objects.count()) == (1, 1)


def test_what_nobody_can_take_is_not_tried_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def fail(*arguments: Any) -> None:
        nonlocal tries
        tries += 1
        raise IntegrityError("always")

    monkeypatch.setattr(storage, "store_new", fail)
    with pytest.raises(IntegrityError):
        take_all(results(world, 1), world.now, {})
    assert tries == storage._TRIES


def test_a_commit_known_by_its_beginning_gets_its_whole_sha(world: World) -> None:
    Commit.objects.create(sha="b" * 12, title="mm: a, as an old report told it")
    world.ingest(world.result("b" * 40, "mm: a"))
    commit = Commit.objects.get(sha="b" * 40)
    assert commit.title == "mm: a, as an old report told it"
    assert commit.author_email == "dana@dev.example"
    assert not Commit.objects.filter(sha="b" * 12).exists()


def test_the_numbers_of_the_shared_data_are_those_of_a_hand(world: World, shared: Path) -> None:
    """example.json: means 3002/3 and 2102.5/3. lkp-result: means 1010.5 and 688.125, as its own avg.json says."""
    paths = [shared / "bisect-result" / "example.json", shared / "lkp-result"]
    answers = [answer for path in paths for answer in take_in(read_path(path), [], world.now)]
    assert [answer.rejection for answer in answers] == [None, None]
    found = {(each.metric.name, each.scenario.params.get("test", "")): each for each in Finding.objects.all()}
    widgets, p95 = found["demo.widgets_per_sec", "widgets"], found["demo.p95_ms", "widgets"]
    assert widgets.change_pct_raw == pytest.approx(100 * (2102.5 / 3002 - 1))  # -29.963 %
    assert (widgets.verdict, widgets.change_pct) == ("regression", widgets.change_pct_raw)
    assert widgets.old_stddev_pct == pytest.approx(100 * (38 / 3 / 3) ** 0.5 / (3002 / 3))
    assert p95.change_pct_raw == pytest.approx(100 * (18.4 / 12.3 - 1))  # +49.593 %, and less is better
    assert (p95.verdict, p95.change_pct) == ("regression", -(p95.change_pct_raw or 0))
    lkp = found["demo.widgets_per_sec", ""]
    assert lkp.change_pct_raw == pytest.approx(100 * (688.125 - 1010.5) / 1010.5)  # -31.903 %
    assert lkp.old_stddev_pct == pytest.approx(100 * 17.124543789543708 / 1010.5)
    assert lkp.new_stddev_pct == pytest.approx(100 * 22.029454714086775 / 688.125)
    still = found["demo.time.elapsed_time", ""]
    assert (still.change_pct_raw, still.verdict) == (0.0, "not significant")
    assert Report.objects.get().findings.filter(headline=True).get() == widgets


def test_every_stored_payload_is_understood_again(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    row = BisectResult.objects.get()
    assert row.format in ADAPTERS
    again = reread(row.format, row.payload, row.bad_sha, "stored")
    assert (again.producer, again.id, again.payload) == (row.producer, row.external_id, row.payload)


# --- two processes at once ---


def ingest_twice(file: Path, **env: str) -> list[subprocess.CompletedProcess[str]]:
    """The same file, ingested by two processes at the same time."""
    command = [sys.executable, "manage.py", "ingest", str(file), "-v0"]
    environment = {**os.environ, **env}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    running = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    return [subprocess.CompletedProcess(command, each.wait(), *each.communicate()) for each in running]


def exported(**env: str) -> Iterator[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "manage.py", "export", "findings"],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return (json.loads(line) for line in done.stdout.splitlines())


def two_at_once(world: World, count: int, **env: str) -> None:
    results(world, count, measurements=3)
    processes = ingest_twice(world.directory / "many.jsonl", PERFWORK_VAR=str(world.directory / "var"), **env)
    assert [each.returncode for each in processes] == [0, 0], processes
    assert [each.stderr for each in processes] == ["", ""]
    output = " ".join(each.stdout for each in processes)
    new = sum(
        int(word) for word, what in zip(output.split(), output.split()[1:], strict=False) if what.startswith("new")
    )
    duplicate = sum(
        int(word)
        for word, what in zip(output.split(), output.split()[1:], strict=False)
        if what.startswith("duplicate")
    )
    assert (new, duplicate) == (count, count), output
    rows = list(exported(PERFWORK_VAR=str(world.directory / "var"), **env))
    assert len(rows) == 3 * count
    assert len({(row["report"], row["metric"]) for row in rows}) == 3 * count


@pytest.mark.long
def test_two_processes_take_the_same_results_once_on_sqlite(world: World) -> None:
    two_at_once(world, 1000)


@pytest.mark.long
def test_two_processes_take_the_same_results_once_on_postgresql(world: World, postgres: str) -> None:
    two_at_once(world, 1000, DATABASE_URL=postgres)


# --- Stored bisect results are measured again by today's code: what an older version misread is corrected ---

MEASURED = ("old_mean", "new_mean", "old_samples", "new_samples", "change_pct", "change_pct_raw", "verdict", "p_value")


def measured() -> list[tuple[object, ...]]:
    return list(Finding.objects.order_by("pk").values_list(*MEASURED))


@pytest.fixture
def replayed_results(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b"))


def test_what_is_as_it_was_stays(replayed_results: None) -> None:
    before = (measured(), list(Report.objects.values()))
    assert read_again() == ReadAgain(results=2)
    assert (measured(), list(Report.objects.values())) == before


def test_what_was_misread_is_measured_again_with_all_that_follows(replayed_results: None) -> None:
    before, lines = measured(), list(Report.objects.order_by("pk").values_list("change", "verdict"))
    first = Finding.objects.order_by("pk")[0]
    Finding.objects.filter(pk=first.pk).update(
        old_mean=1.0, new_mean=2.0, new_samples=[2.0], change_pct=100.0, change_pct_raw=100.0, verdict="improvement"
    )
    Report.objects.filter(pk=first.report_id).update(change=100.0, verdict="improvement")
    assert read_again() == ReadAgain(results=2, changed=1)
    assert measured() == before
    assert list(Report.objects.order_by("pk").values_list("change", "verdict")) == lines
    assert read_again().changed == 0


def test_a_result_that_can_not_be_read_any_more_stays_as_it_was(replayed_results: None) -> None:
    before = measured()
    row = BisectResult.objects.order_by("pk")[0]
    BisectResult.objects.filter(pk=row.pk).update(payload="{}")
    assert read_again() == ReadAgain(results=2, rejected=1)
    BisectResult.objects.filter(pk=row.pk).update(format="a format of the past")
    assert read_again() == ReadAgain(results=2, rejected=1)
    assert measured() == before


def test_a_mail_that_waits_is_composed_again(replayed_results: None, world: World) -> None:
    compose_due(world.settings, world.now, approve_first=True)
    assert set(OutgoingMail.objects.values_list("stale", flat=True)) == {False}
    Finding.objects.update(new_mean=2.0)
    read_again()
    assert set(OutgoingMail.objects.values_list("stale", flat=True)) == {True}


def test_a_result_that_today_s_code_trips_over_ends_nothing(
    replayed_results: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trips(value: object, where: str) -> object:
        raise KeyError("runs")

    monkeypatch.setattr("bot.results.recognise.ADAPTERS", dict.fromkeys(("perf-bisect-result/1",), trips))
    assert read_again() == ReadAgain(results=2, rejected=2)


def test_a_direction_that_today_s_code_knows_grades_what_is_stored(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    before = (measured(), list(Report.objects.values_list("verdict", "held")))
    Metric.objects.update(direction="unknown", direction_by="nobody")
    Finding.objects.update(verdict="unknown")
    Report.objects.update(verdict="unknown", held="the direction of vm-scan.ops_per_sec is unknown")
    read_again()
    assert measured() == before[0]
    assert list(Report.objects.values_list("verdict", flat=True)) == [before[1][0][0]]


def test_of_a_place_that_a_result_measures_twice_the_first_counts(world: World) -> None:
    value = world.result("b" * 40, "mm: a")
    slower = {**value["measurements"][0], "role": "kpi", "bad": {"samples": [500, 505, 495]}}
    value["additional"] = [{"test": value["test"], "machine": value["machine"], "measurements": [slower]}]
    world.ingest(value)
    before = measured()
    assert read_again().changed == 0
    assert measured() == before


# --- What a stored result says beside its findings, by format ---

OURS = {
    "good": {"sha": "a" * 40, "describe": "v6.11"},
    "bad": {"sha": "b" * 40},
    "tree": {"name": "next", "url": "https://git.example.org/next.git"},
    "bisect": {"steps": [{}, {}], "rechecks": [{"ref": "v6.12-rc2", "state": "still-bad"}]},
    "test": {"description": "writes files", "url": "https://example.org/t"},
    "artifacts": [{"name": "dmesg", "url": "https://example.org/d"}, {"name": "inline", "text": "x"}],
    "build": {"kconfig": "x86_64", "cmdline": "quiet", "config_url": "https://example.org/c"},
}


def test_our_own_format_has_all_of_them() -> None:
    assert details_of(perf_bisect_result.FORMAT, json.dumps(OURS)) == ResultDetails(
        good="v6.11",
        bad="b" * 10,
        bisect_steps=2,
        tree_url="https://git.example.org/next.git",
        rechecks=(("v6.12-rc2", "still-bad"),),
        test_text="writes files",
        test_url="https://example.org/t",
        artifacts=(("dmesg", "https://example.org/d"),),
        build={"kconfig": "x86_64", "config_url": "https://example.org/c", "cmdline": "quiet"},
    )


def test_an_lkp_job_says_how_the_kernel_was_built() -> None:
    job = {"kconfig": "x86_64-rhel", "compiler": "gcc-12", "cmdline": "of the job", "rootfs": ["not", "text"]}
    assert details_of(lkp.FORMAT, json.dumps({"culprit": {"job": job}})) == ResultDetails(
        build={"kconfig": "x86_64-rhel", "compiler": "gcc-12"}
    )


@pytest.mark.parametrize(
    ("name", "payload"), [(bisect_log.FORMAT, "{}"), (lkp.FORMAT, "[]"), (perf_bisect_result.FORMAT, "{}")]
)
def test_what_is_not_said_is_empty(name: str, payload: str) -> None:
    assert details_of(name, payload) == ResultDetails()
