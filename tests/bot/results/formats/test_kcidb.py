"""KCIDB reports: pairs of tests with numbers, which commit is the parent, and what is rejected."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import kcidb
from bot.results.recognise import Input, read_bytes, reread
from bot.results.values import RejectedInput, Result
from tests.bot.results.test_recognise import JSON

OLD, NEW = "a" * 40, "b" * 40


def checkout(sha: str, describe: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"lab7:{sha[:8]}",
        "origin": "lab7",
        "tree_name": "mainline",
        "git_repository_url": "https://git.example.org/linux.git",
        "git_repository_branch": "master",
        "git_commit_hash": sha,
        "git_commit_name": describe,
        "git_commit_message": f'mm: change {sha[:4]}\n\nWords.\n\nFixes: 1234567890ab ("mm: before")\n',
        "start_time": "2026-03-01T00:00:00Z",
        "valid": True,
        **more,
    }


def report(**changes: Any) -> dict[str, Any]:
    """Two commits, a build of each, three runs of two tests on both."""
    tests = []
    for sha, base in ((OLD, 1000.0), (NEW, 700.0)):
        for run in range(3):
            for path, unit, value in (
                ("fio.read_iops", "IOPS", base + run),
                ("fio.read_p99", "ms", 1000 / base + run / 100),
            ):
                tests.append(
                    {
                        "id": f"lab7:{sha[:4]}-{run}-{path}",
                        "origin": "lab7",
                        "build_id": f"lab7:build-{sha[:4]}",
                        "path": path,
                        "status": "PASS",
                        "number": {"value": value, "unit": unit},
                        "environment": {"misc": {"platform": "lab7-m1"}},
                        "start_time": "2026-03-02T10:00:00+00:00",
                    }
                )
    builds = [
        {
            "id": f"lab7:build-{sha[:4]}",
            "origin": "lab7",
            "checkout_id": f"lab7:{sha[:8]}",
            "architecture": "x86_64",
            "config_name": "defconfig+perf",
        }
        for sha in (OLD, NEW)
    ]
    # The culprit stands first: the order of the report says nothing.
    checkouts = [checkout(NEW, "v7.0-rc1-13-gbbbbbbbbbbbb"), checkout(OLD, "v7.0-rc1-12-gaaaaaaaaaaaa")]
    return {"version": {"major": 5, "minor": 3}, "checkouts": checkouts, "builds": builds, "tests": tests, **changes}


def read(value: Any) -> list[Input]:
    return list(read_bytes(json.dumps(value, indent=1).encode(), "in"))


def result(value: Any) -> Result:
    (only,) = read(value)
    assert only.result, only.rejection
    return only.result


def test_what_lands_where() -> None:
    parsed = result(report())
    assert parsed.culprit
    assert parsed.parent
    assert (parsed.producer, parsed.outcome, parsed.uncertainty) == ("kcidb:lab7", "conclusive", "")
    assert (parsed.parent.sha, parsed.culprit.sha, parsed.culprit.title) == (OLD, NEW, "mm: change bbbb")
    assert parsed.culprit.describe == "v7.0-rc1-13-gbbbbbbbbbbbb"
    assert parsed.culprit.trailers == (("Fixes", '1234567890ab ("mm: before")'),)
    assert (parsed.tree, parsed.branch, parsed.tree_url) == ("mainline", "master", "https://git.example.org/linux.git")
    (run,) = parsed.runs
    assert (run.suite, run.machine.id) == ("fio", "lab7-m1")
    assert run.params == {"arch": "x86_64", "config": "defconfig+perf"}
    assert {each.metric: (each.unit, each.old_samples) for each in run.measurements} == {
        "fio.read_iops": ("IOPS", (1000, 1001, 1002)),
        "fio.read_p99": ("ms", (1.0, 1.01, 1.02)),
    }
    assert parsed.headline.metric == "fio.read_iops"  # what fio is run for, though the other moved more


def test_commits_apart_or_undescribed_are_doubtful() -> None:
    apart = report(checkouts=[checkout(OLD, "v7.0-rc1-2-gaaaaaaaaaaaa"), checkout(NEW, "v7.0-rc1-9-gbbbbbbbbbbbb")])
    assert "7 commits apart: the culprit may be between them" in result(apart).uncertainty
    earlier = checkout(NEW, "next-1", start_time="2026-02-01T00:00:00Z")
    by_time = result(report(checkouts=[checkout(OLD, "next-2"), earlier]))
    assert by_time.culprit
    assert (by_time.culprit.sha, by_time.may_be_reversed) == (OLD, True)
    assert "checked out first is assumed to be the parent" in by_time.uncertainty
    blind = result(report(checkouts=[checkout(OLD, "x"), checkout(NEW, "y")]))
    assert "unknown which of aaaaaaaaaa and bbbbbbbbbb is the parent" in blind.uncertainty


def test_failed_tests_and_tests_without_numbers_are_no_samples() -> None:
    value = report()
    value["tests"][0]["status"] = "SKIP"
    value["tests"][1]["status"] = "FAIL"  # it ran, and was too slow
    del value["tests"][2]["number"]
    parsed = result(value)
    iops = next(each for each in parsed.runs[0].measurements if each.metric == "fio.read_iops")
    assert iops.old_samples == (1002,)


def test_two_machines_are_two_runs_of_one_result() -> None:
    value = report()
    more = copy.deepcopy(value["tests"])
    for test in more:
        test["id"] += "-m2"
        test["environment"]["misc"]["platform"] = "lab7-m2"
    value["tests"] += more
    assert [run.machine.id for run in result(value).runs] == ["lab7-m1", "lab7-m2"]


def test_another_build_is_another_run_and_another_unit_another_metric() -> None:
    value = report()
    for table, key in (("builds", "id"), ("tests", "id")):
        for row in copy.deepcopy(value[table]):
            row[key] += "-clang"
            value[table].append(row)
    for build in value["builds"][2:]:
        build["compiler"] = "clang-19"
    for test in value["tests"][12:]:
        test["build_id"] += "-clang"
        test["number"]["value"] *= 10
    value["tests"] += [
        {**test, "id": test["id"] + "-us", "number": {"value": test["number"]["value"] * 1000, "unit": "us"}}
        for test in value["tests"][:12]
        if test["path"] == "fio.read_p99"
    ]
    gcc, clang = result(value).runs
    assert clang.params["compiler"] == "clang-19"
    assert {each.metric: each.old_samples[0] for each in gcc.measurements} == {
        "fio.read_iops": 1000,
        "fio.read_p99 (ms)": 1.0,
        "fio.read_p99 (us)": 1000.0,
    }
    assert {each.metric for each in clang.measurements} == {"fio.read_iops", "fio.read_p99"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": {"major": 4, "minor": 0}}, "in, /version/major: expected KCIDB 5, found 4"),
        ({"version": {}}, "in, /version/major: expected KCIDB 5, found None"),
        ({"tests": [{"id": "lab7:1"}]}, "in, /tests/0: 'build_id' is a required property"),
        ({"tests": 3}, "in, /tests: 3 is not of type 'array'"),
        ({"tests": []}, "expected tests with a number on two commits, found none that can be compared"),
        ({"checkouts": [checkout(OLD, "x")]}, "expected tests with a number on two commits"),
        ({"checkouts": [checkout("HEAD", "x")]}, "in, /checkouts/0/git_commit_hash: 'HEAD' does not match"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], expected: str) -> None:
    (only,) = read(report(**changes))
    assert expected in str(only.rejection)
    assert "\n" not in str(only.rejection)


def test_three_commits_are_refused() -> None:
    value = report()
    value["checkouts"].append(checkout("c" * 40, "v7.0-rc1-14-gcccccccccccc"))
    value["builds"].append({**value["builds"][0], "id": "lab7:third", "checkout_id": "lab7:cccccccc"})
    value["tests"].append({**value["tests"][0], "id": "lab7:third", "build_id": "lab7:third"})
    assert "found one on aaaaaaaaaa, bbbbbbbbbb, cccccccccc" in str(read(value)[0].rejection)


def test_a_stored_payload_is_read_again() -> None:
    parsed = result(report())
    assert reread(parsed.format, parsed.payload, parsed.bad.sha, "stored") == parsed


def test_reports_and_results_may_stand_in_one_file() -> None:
    raw = json.dumps(report()).encode() + b"\n" + json.dumps({"schema": "x"}).encode() + b"\n"
    one, two = read_bytes(raw, "in")
    assert one.result
    assert "in, line 2" in str(two.rejection)


@given(JSON, st.sampled_from(["version", "checkouts", "builds", "tests"]))
def test_any_value_is_a_result_or_a_refusal(value: Any, field: str) -> None:
    for item in read(report(**{field: value})):
        assert item.result or item.rejection


@given(JSON, st.sampled_from(["checkouts", "builds", "tests"]), st.data())
def test_any_value_in_any_field_is_a_result_or_a_refusal(value: Any, table: str, data: st.DataObject) -> None:
    value_report = report()
    row = value_report[table][0]
    row[data.draw(st.sampled_from(sorted(row)))] = value
    for each in read(value_report):
        assert each.result or each.rejection


@given(JSON)
def test_any_stored_value_is_a_result_or_a_refusal(value: Any) -> None:
    with contextlib.suppress(RejectedInput):
        assert kcidb.parse(value, "x").runs
