"""LKP result roots: what is measured, what is padding, what is missing, and what is rejected."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import lkp
from bot.results.recognise import Input, read_path, read_paths, reread
from bot.results.values import RejectedInput
from tests.bot.results.test_recognise import JSON

PARENT, CULPRIT = "a" * 40, "b" * 40
TEST_PATH = "demo/performance-50%-30s/lab7-m1/debian-13.cgz/x86_64-rhel-9.4/gcc-14"
JOB = """\
suite: demo
testcase: demo
nr_threads: 50%
demo:
  runtime: 30s
tbox_group: lab7-m1
cpufreq_governor: performance
commit: {commit}
branch: linus/master
nr_cpu: 64
memory: 256G
"""
OLD = {"demo.widgets_per_sec": [1001, 998, 1003], "demo.time.elapsed_time": [30.0, 30.1, 30.2]}
NEW = {"demo.widgets_per_sec": [702, 699.5, 701], "demo.time.elapsed_time": [30.0, 30.1, 30.2]}


def write_root(top: Path, commit: str, matrix: Any = None, job: str = JOB, runs: list[Any] | None = None) -> Path:
    """A result root with one job, and a matrix or the stats of its runs."""
    root = top / TEST_PATH / commit
    for number in range(len(runs or [0])):
        (root / str(number)).mkdir(parents=True)
        (root / str(number) / "job.yaml").write_text(job.replace("{commit}", commit))
    if matrix is not None:
        (root / "matrix.json").write_text(matrix if isinstance(matrix, str) else json.dumps(matrix))
    for number, stats in enumerate(runs or []):
        (root / str(number) / "stats.json").write_text(json.dumps(stats))
    return root


def read(top: Path) -> Input:
    (only,) = read_path(top)
    return only


def samples(top: Path, metric: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    result = read(top).result
    assert result, read(top).rejection
    found = next(each for each in result.runs[0].measurements if each.metric == metric)
    return found.old_samples, found.new_samples


def test_the_shared_roots_give_what_lkp_reckons(shared: Path) -> None:
    """LKP's change is 100·(avg2 - avg1)/avg1, its spread the population's: the avg.json and stddev.json beside it."""
    top = shared / "lkp-result"
    result = read(top).result
    assert result
    for each in result.runs[0].measurements:
        for commit, side, numbers in ((PARENT, each.old, each.old_samples), (CULPRIT, each.new, each.new_samples)):
            root = next(top.rglob(commit))
            average = json.loads((root / "avg.json").read_text())[each.metric]
            spread = json.loads((root / "stddev.json").read_text())[each.metric]
            assert (side.mean, side.stddev) == (pytest.approx(average), pytest.approx(spread))
            assert side.stddev_pct == pytest.approx(100 * spread / average)
            assert side.mean == pytest.approx(np.mean(numbers))
    assert result.headline.metric == "demo.widgets_per_sec"
    assert (result.runs[0].suite, result.runs[0].machine.id, result.runs[0].machine.cpus) == ("demo", "lab7-m1", 64)
    assert result.runs[0].params == {"cpufreq_governor": "performance", "nr_threads": "50%", "runtime": "30s"}
    assert (result.tree, result.branch) == ("linus", "master")


def test_the_runs_tell_the_same_as_their_matrix(tmp_path: Path) -> None:
    for commit, matrix in ((PARENT, OLD), (CULPRIT, NEW)):
        write_root(tmp_path / "matrix", commit, matrix)
        write_root(
            tmp_path / "runs", commit, runs=[{name: column[n] for name, column in matrix.items()} for n in range(3)]
        )
    one, other = read(tmp_path / "matrix").result, read(tmp_path / "runs").result
    assert one
    assert other
    assert one.runs == other.runs


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1001, 998, 1003, 0, 0], (1001, 998, 1003)),  # padding
        ([1001, 0, 1003, 0, 0], (1001, 0, 1003)),  # a zero between numbers was measured
        ([1001, -1, 1003, 5, 6], (1001, 1003, 5, 6)),  # -1 is missing
        ([0, 0, 0, 0, 0], (0, 0, 0, 0, 0)),  # nothing but zeros was measured
        ([1001, 998, -1, 0, 0], (1001, 998)),
    ],
)
def test_padding_and_missing_values_are_no_samples(tmp_path: Path, column: list[float], expected: tuple[float]) -> None:
    write_root(tmp_path, PARENT, {"demo.widgets": column, "demo.x": [1, 2, 3, 4, 5]})
    write_root(tmp_path, CULPRIT, {"demo.widgets": [1, 2, 3], "demo.x": [1, 2, 3]})
    assert samples(tmp_path, "demo.widgets")[0] == expected


def test_incomplete_runs_are_dropped(tmp_path: Path) -> None:
    incomplete = [0, 1, 0, 0]
    write_root(tmp_path, PARENT, {"demo.widgets": [10, 99, 12, 11], "last_state.is_incomplete_run": incomplete})
    write_root(tmp_path, CULPRIT, {"demo.widgets": [7, 8]})
    assert samples(tmp_path, "demo.widgets") == ((10, 12, 11), (7, 8))


def test_incomplete_runs_are_dropped_by_their_own_stats_too(tmp_path: Path) -> None:
    runs = [{"demo.widgets": 10}, {"demo.widgets": 99, "last_state.is_incomplete_run": 1}, {"demo.widgets": 12}]
    write_root(tmp_path, PARENT, runs=runs)
    write_root(tmp_path, CULPRIT, runs=[{"demo.widgets": 7, "demo.new": 1}, {"demo.widgets": 8}])
    assert samples(tmp_path, "demo.widgets") == ((10, 12), (7, 8))


@pytest.mark.parametrize(
    ("column", "crashed", "in_matrix", "expected"),
    [
        ([0, 0, 0, 4, 5], 0, True, (0, 0, 4, 5)),  # the crashed run is a column: its zero is padding
        ([0, 0, 4, 5], 0, False, (0, 0, 4, 5)),  # it is none
        ([3, 0, 0, 4, 5], 0, True, (3, 0, 0, 4, 5)),  # it has what isn't zero
        ([1, 2, 3], 4, True, (1, 2, 3)),  # nobody knows whose these are
    ],
)
def test_a_run_that_left_no_stats_spoils_no_other(
    tmp_path: Path, column: list[float], crashed: int, in_matrix: bool, expected: tuple[float]
) -> None:
    runs = [{"demo.widgets": 1} for _ in range(5)]
    sources = [f"/lkp/{n}/stats.json" for n in range(5) if in_matrix or n != crashed]
    root = write_root(tmp_path, PARENT, {"demo.widgets": column, "stats_source": sources}, runs=runs)
    (root / str(crashed) / "stats.json").unlink()
    write_root(tmp_path, CULPRIT, {"demo.widgets": [7, 8]})
    assert samples(tmp_path, "demo.widgets")[0] == expected


def test_a_run_whose_stats_are_an_empty_file_is_missing(tmp_path: Path) -> None:
    for commit, value in ((PARENT, 10), (CULPRIT, 7)):
        root = write_root(tmp_path, commit, OLD, runs=[{"demo.widgets": value + run} for run in range(3)])
        (root / "matrix.json").unlink()
        (root / "1" / "stats.json").write_text("")
    assert samples(tmp_path, "demo.widgets") == ((10, 12), (7, 9))


def test_the_files_that_say_how_it_was_run_are_kept(tmp_path: Path) -> None:
    for commit, matrix in ((PARENT, OLD), (CULPRIT, NEW)):
        root = write_root(tmp_path, commit, matrix)
        (root / "0" / "reproduce.sh").write_text(f"run {commit}\n")
        (root / "0" / "dmesg").write_text("x" * 100_000 + "\noom-killer\n")
        (root / "0" / "huge").write_text("x" * 100_000)
    (root / "0" / "config").symlink_to("/etc/passwd")
    result = read(tmp_path).result
    assert result
    assert result.culprit
    assert set(result.files) == {"job.yaml", "reproduce.sh", "dmesg"}
    assert result.files["reproduce.sh"] == f"run {CULPRIT}\n"
    assert result.files["dmesg"].endswith("\noom-killer\n")
    assert len(result.files["dmesg"]) == 64 * 1024


def test_columns_that_are_none_are_left_out_and_said(tmp_path: Path) -> None:
    write_root(tmp_path, PARENT, {**OLD, "demo.x": [1, "?", 3], "demo.y": {"a": 1}})
    write_root(tmp_path, CULPRIT, NEW)
    result = read(tmp_path).result
    assert result
    assert result.headline.metric == "demo.widgets_per_sec"
    assert result.note.startswith("left out: ")
    assert "/demo.x" in result.note
    assert "/demo.y: expected a list with one value per run" in result.note


def test_the_runs_that_were_counted_bound_the_columns(tmp_path: Path) -> None:
    sources = ["/lkp/0/stats.json", "/lkp/1/stats.json"]
    write_root(tmp_path, PARENT, {"demo.widgets": [0, 0, 0, 0], "stats_source": sources})
    write_root(tmp_path, CULPRIT, {"demo.widgets": [7, 8]})
    assert samples(tmp_path, "demo.widgets") == ((0, 0), (7, 8))


RUNS = [f"/lkp/{run}/stats.json" for run in range(5)]


@pytest.mark.parametrize(
    ("column", "runs", "values"),
    [
        # What LKP pads: at the end what only early runs have, at the front what only later ones have.
        ([5, 6, 7, 0, 0], None, (5, 6, 7)),
        ([0, 0, 5, 6, 7], None, (5, 6, 7)),
        ([0, 5, 6, 7, 0], None, (5, 6, 7)),
        ([5, 6, 7], None, (5, 6, 7)),  # and some not at all: samples without order
        ([0, 0, 5, 0, 7], None, (0, 0, 5, 0, 7)),  # zeros are measured here
        ([0, 0, 0, 0, 0], None, (0, 0, 0, 0, 0)),
        ([-1, 5, 6, -1, 7], None, (5, 6, 7)),
        # Where the runs' own stats are there, they tell.
        ([0, 0, 5, 6, 7], [2, 3, 4], (5, 6, 7)),
        ([0, 0, 5, 6, 7], [0, 1, 2, 3, 4], (0, 0, 5, 6, 7)),
        ([5, 6, 0, 0, 0], [0, 1, 2], (5, 6, 0)),
        ([5, 6, 7], [1, 2, 4], (5, 6, 7)),
    ],
)
def test_a_column_that_not_all_runs_have(
    tmp_path: Path, column: list[int], runs: list[int] | None, values: tuple[int, ...]
) -> None:
    matrix = {"demo.ops_per_sec": [1001, 998, 1003, 1000, 999], "demo.stalls": column, "stats_source": RUNS}
    for commit in (PARENT, CULPRIT):
        root = write_root(tmp_path, commit, matrix)
        for run in range(5) if runs is not None else ():
            (root / str(run)).mkdir(exist_ok=True)
            own = {"demo.ops_per_sec": 1} | ({"demo.stalls": 1} if run in runs else {})
            (root / str(run) / "stats.json").write_text(json.dumps(own))
    assert samples(tmp_path, "demo.stalls") == (values, values)
    assert samples(tmp_path, "demo.ops_per_sec")[0] == (1001, 998, 1003, 1000, 999)


def test_a_short_column_leaves_out_the_incomplete_run_that_it_is_of(tmp_path: Path) -> None:
    incomplete = {"last_state.is_incomplete_run": [0, 1, 0, 0, 0]}
    matrix = {"demo.ops_per_sec": [1001, 998, 1003, 1000, 999], "demo.stalls": [5, 6, 7], "stats_source": RUNS}
    for commit in (PARENT, CULPRIT):
        root = write_root(tmp_path, commit, matrix | incomplete)
        for run in range(5):
            (root / str(run)).mkdir(exist_ok=True)
            own = {"demo.ops_per_sec": 1} | ({"demo.stalls": 1} if run in (1, 2, 3) else {})
            (root / str(run) / "stats.json").write_text(json.dumps(own))
    assert samples(tmp_path, "demo.stalls")[0] == (6, 7)
    assert samples(tmp_path, "demo.ops_per_sec")[0] == (1001, 1003, 1000, 999)


def test_one_bad_column_takes_no_other_down(tmp_path: Path) -> None:
    for commit in (PARENT, CULPRIT):
        write_root(tmp_path, commit, {"demo.ops_per_sec": [1, 2], "demo.bad": [1, "2"], "demo.worse": 3})
    assert samples(tmp_path, "demo.ops_per_sec") == ((1, 2), (1, 2))


def test_a_matrix_inside_of_a_run_is_a_time_series(tmp_path: Path) -> None:
    for commit, matrix in ((PARENT, OLD), (CULPRIT, NEW)):
        root = write_root(tmp_path, commit, matrix)
        (root / "0" / "matrix.json").write_text(json.dumps({"demo.widgets_per_sec": [1, 2, 3]}))
    assert samples(tmp_path, "demo.widgets_per_sec")[0] == (1001, 998, 1003)


def test_which_one_is_the_parent_is_said_by_their_order_on_the_command_line(tmp_path: Path) -> None:
    new, old = write_root(tmp_path, PARENT, NEW), write_root(tmp_path, CULPRIT, OLD)
    (ordered,) = read_paths([old, new])
    assert ordered.result
    assert ordered.result.parent
    assert ordered.result.culprit
    assert (ordered.result.parent.sha, ordered.result.culprit.sha, ordered.result.uncertainty) == (CULPRIT, PARENT, "")
    (guessed,) = read_paths([tmp_path])
    assert guessed.result
    assert guessed.result.uncertainty.startswith("unknown which commit is the parent")


def test_a_root_that_holds_other_commits_too_is_refused(tmp_path: Path) -> None:
    for commit in (PARENT, CULPRIT, "c" * 40):
        write_root(tmp_path, commit, OLD)
    assert "expected the result roots of a parent and a culprit, found 3: aaaaaaaaaa, bbbbbbbbbb, cccccc" in str(
        read(tmp_path).rejection
    )


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("matrix", "job", "expected"),
    [
        ({"demo.a": [1, "2", 3]}, JOB, "/demo.a: expected numbers only, found '2' among them"),
        ({"demo.a": [1, True]}, JOB, "/demo.a: expected numbers only, found 'True' among them"),
        ({"demo.a": [1, None]}, JOB, ""),  # missing, as -1 is
        ({"demo.a": [None]}, JOB, "expected a measured value, found none"),
        ({"demo.a": 1}, JOB, "/demo.a: expected a list with one value per run"),
        ({}, JOB, "expected an object with a list per metric"),
        ([], JOB, "expected an object with a list per metric"),
        ('{"demo.a": [1, NaN, -Infinity]}', JOB, ""),
        ('{"demo.a": [1], "demo.a": [2]}', JOB, "duplicate key 'demo.a'"),
        ({"demo.a": [1.0, 1e308, 1e308]}, JOB, "expected numbers whose mean and standard deviation are finite"),
        ({"demo.a": [1] * 100_001}, JOB, "expected at most 100000 samples, found 100001"),
        ({"demo.a": [1], "last_state.is_incomplete_run": [1]}, JOB, "expected a complete run, found 1 incomplete"),
        ({"other.a": [1]}, JOB, "expected metrics common to both commits, found none"),
        (OLD, JOB + BOMB, "job.yaml, line 14: can't read YAML: an alias (*name)"),
        (
            OLD,
            JOB + "one: &1 perf\ntwo: *1\nthree: &3\n  a: b\nfour: *3\nfive: a\nfive: a\n",
            "",
        ),  # as Ruby and labs write it
        (OLD, JOB + "one: *1\n", "can't read YAML: an alias (*name)"),
        (OLD, JOB + "a: &a [x, x]\n" + "".join(f"k{n}: *a\n" for n in range(101)), "can't read YAML: an alias"),
        (OLD, JOB + "suite: again\n", "job.yaml, line 1: can't read YAML: duplicate key 'suite'"),
        (OLD, JOB + "x: [" + "[" * 5000, "job.yaml"),
        (OLD, "- a list\n", "job.yaml: expected a mapping, found list"),
        (OLD, JOB + "x: !!python/object:os.system {}\n", ""),  # a tag is a text like any other
        (OLD, JOB + "#" * 300_000, "job.yaml: expected at most 262,144 bytes"),
        (OLD, JOB.replace("{commit}", "c" * 40), f"expected the runs of {PARENT}, found a job of cccc"),
        (OLD, JOB.replace("lab7-m1", "lab8"), "expected the same test on both commits, but machine differs"),
    ],
)
def test_what_is_refused(tmp_path: Path, matrix: Any, job: str, expected: str) -> None:
    write_root(tmp_path, PARENT, matrix, job)
    write_root(tmp_path, CULPRIT, {"demo.a": [1, 2, 3]} if matrix != OLD else NEW)
    answer = read(tmp_path)
    if expected:
        assert answer.rejection
        assert expected in str(answer.rejection)
        assert "\n" not in str(answer.rejection)
    else:
        assert answer.result


def test_a_link_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(OLD))
    top = tmp_path / "drop"
    root = write_root(top, PARENT)
    (root / "matrix.json").symlink_to(secret)
    write_root(top, CULPRIT, NEW)
    assert "a symbolic link that leads out of" in str(read(top).rejection)


def test_a_link_to_a_file_outside_is_refused_in_any_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.json").symlink_to(tmp_path / "secret.json")
    assert "a symbolic link that leads out of" in str(read(tmp_path / "drop").rejection)


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    root = write_root(tmp_path, PARENT, OLD)
    write_root(tmp_path, CULPRIT, NEW)
    (root / "0" / "job.yaml").write_bytes(b"suite: \xff\n")
    assert "expected UTF-8, found the byte 0xff at offset 7" in str(read(tmp_path).rejection)


def test_monitors_that_did_not_move_are_left_out_of_many(tmp_path: Path) -> None:
    still = {f"vmstat.m{n}": [1, 2, 3] for n in range(150)}
    write_root(tmp_path, PARENT, {**OLD, **still, "vmstat.moved": [1, 2, 3]})
    write_root(tmp_path, CULPRIT, {**NEW, **still, "vmstat.moved": [5, 6, 7]})
    result = read(tmp_path).result
    assert result
    assert [each.metric for each in result.runs[0].measurements if each.metric.startswith("vmstat")] == ["vmstat.moved"]


def test_a_stored_payload_is_read_again(tmp_path: Path) -> None:
    write_root(tmp_path, PARENT, OLD)
    write_root(tmp_path, CULPRIT, NEW)
    result = read(tmp_path).result
    assert result
    stored = replace(result, files={}, parent_files={})  # the payload has what was measured
    assert reread(result.format, result.payload, result.bad.sha, "stored") == stored
    again = lkp.parse(json.loads(result.payload), "stored", in_order=True)
    assert (again.id, again.payload, again.uncertainty) == (result.id, result.payload, "")


def test_where_the_files_lie_makes_no_other_result(tmp_path: Path) -> None:
    """The job knows its result root; a copy of the last directories alone is the same result."""
    job = JOB + f"result_root: /lkp/result/{TEST_PATH}/{{commit}}/0\n"
    for commit, matrix in ((PARENT, OLD), (CULPRIT, NEW)):
        write_root(tmp_path / "whole", commit, matrix, job)
    (tmp_path / "part").mkdir()
    (tmp_path / "whole" / TEST_PATH).rename(tmp_path / "part" / "gcc-14")
    result = read(tmp_path / "part").result
    assert result
    assert result.id == f"aaaaaaaaaaaa..bbbbbbbbbbbb (3+3 runs) {TEST_PATH}"
    assert result.runs[0].params == {"cpufreq_governor": "performance", "nr_threads": "50%", "runtime": "30s"}


ROOT = {"commit": PARENT, "path": TEST_PATH, "job": {"testcase": "demo", "tbox_group": "m", "commit": PARENT}}


@given(JSON, JSON, st.sampled_from(["matrix", "runs", "job", "path", "commit"]))
def test_any_value_is_a_result_or_a_refusal(value: Any, other: Any, field: str) -> None:
    culprit = {**ROOT, "commit": CULPRIT, "job": {"testcase": "demo", "tbox_group": "m"}, "matrix": {"demo.a": [1, 2]}}
    for data in (value, {"parent": value, "culprit": other}, {"parent": {**ROOT, field: value}, "culprit": culprit}):
        with contextlib.suppress(RejectedInput):
            assert lkp.parse(data, "x").runs


@given(st.text(max_size=200))
def test_any_job_is_a_mapping_or_a_refusal(text: str) -> None:
    with contextlib.suppress(RejectedInput):
        assert isinstance(lkp.read_job(text, "job.yaml"), dict)
