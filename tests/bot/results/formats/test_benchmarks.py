"""Files of benchmarks: what each tool's own output says, and every fault of a malformed one with its place."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import kernel_benchmarks
from bot.results.formats.benchmark import Document, Metric, Reading
from bot.results.formats.benchmark_files import (
    FORMATS,
    File,
    RunContext,
    compare,
    is_version,
    of_kernel,
    parse,
    read_file,
    reader_of,
)
from bot.results.values import RejectedInput
from tests.conftest import ROOT

FOLDER = ROOT / "fixtures" / "benchmarks"
FILES = sorted(path for path in FOLDER.iterdir() if path.name != "README.md")
PARENT, CULPRIT = "b" * 40, "a" * 40
ABOUT = RunContext(
    commit=CULPRIT, base=PARENT, title="mm: walk cold folios first", author="Dana <dana@dev.example>", machine="m1"
)


def file(name: str, edit: Callable[[str], str] = lambda text: text) -> File:
    return File(name, edit((FOLDER / name).read_text()))


def metric(reading: Reading, name: str, **params: str) -> Metric:
    [only] = [
        metric
        for test in reading.tests
        for metric in test.metrics
        if metric.name == name and params.items() <= dict(test.params).items()
    ]
    return only


def faults(name: str, *edits: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the faults of a fixture after replacing texts in it; each must be there."""
    text = (FOLDER / name).read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    with pytest.raises(RejectedInput) as rejection:
        read_file(File(name, text))
    return [(place.removeprefix(f"{name}, "), why) for place, why in rejection.value.faults]


# --- What they say ---

# file, metric, parameters, samples, unit, which direction is better
SAYS = (
    ("fio-1.json", "fio.read_bw_MBps", {"rw": "randrw", "bs": "4k", "test": "rd"}, (38.9453125,), "MB/s", "higher"),
    ("fio-1.json", "fio.read_iops", {}, (9970.02997,), "IOPS", "higher"),
    ("fio-1.json", "fio.read_clat_mean_us", {}, (61.002910521,), "us", "lower"),
    ("fio-1.json", "fio.write_clat_99%_us", {}, None, "us", "lower"),
    ("hyperfine.json", "hyperfine.user_time", {"command": "sleep 0.05"}, (0.0014904,), "s", "lower"),
    ("google-benchmark.json", "google-benchmark.bytes_per_second", {"test": "BM_Fill/64"}, None, "B/s", "higher"),
    ("google-benchmark.json", "google-benchmark.real_time", {"test": "BM_Fill/4096"}, None, "ns", "lower"),
    ("pytest-benchmark.json", "pytest-benchmark.time", {"test": "test_pb.py::test_sum"}, None, "s", "lower"),
    ("iperf3-tcp.json", "iperf3.tcp.sender.bps", {"protocol": "tcp"}, (11653778849.190643,), "bit/s", "higher"),
    ("iperf3-udp.json", "iperf3.udp.jitter_ms", {"protocol": "udp"}, (0.003032470703125,), "ms", "lower"),
    ("perf-stat.json", "command.task-clock", {}, (1.018157,), "msec", "lower"),
    ("perf-stat.csv", "command.context-switches", {}, (1.0,), "", ""),
    ("perf-bench-sched-pipe.txt", "perf-bench-sched-pipe.ops_per_sec", {}, (289552.0,), "ops/s", "higher"),
    (
        *("perf-bench-mem-memcpy.txt", "perf-bench-mem-memcpy.GB_per_sec", {"function": "default"}),
        *((20.777926,), "GB/s", "higher"),
    ),
    ("sysbench-cpu.txt", "sysbench.events_per_sec", {"test": "cpu", "threads": "1"}, (894.59,), "events/s", "higher"),
    ("sysbench-fileio.txt", "sysbench.fsyncs_per_sec", {"test": "fileio"}, (1038.72,), "1/s", "higher"),
    ("sysbench-memory.txt", "sysbench.transferred_MiB_per_sec", {"test": "memory"}, (1934.8,), "MiB/s", "higher"),
    ("schbench.txt", "schbench.wakeup_latency_99.0th_us", {}, (41.0,), "us", "lower"),
    ("schbench.txt", "schbench.requests_per_sec", {}, (9002.27,), "1/s", "higher"),
    ("hackbench.txt", "hackbench.time", {"groups": "2", "mode": "process"}, (0.226,), "s", "lower"),
    (
        *("cyclictest.json", "cyclictest.latency_max_us", {"test": "thread 1", "threads": "2"}),
        *((4016.0,), "us", "lower"),
    ),
    ("cyclictest.json", "cyclictest.latency_min_us", {"test": "thread 0"}, (20.0,), "us", "lower"),
    ("cyclictest-nsecs.json", "cyclictest.latency_avg_us", {"options": "-q -l 2000 -N"}, (112.11711,), "us", "lower"),
    ("stress-ng.yaml", "stress-ng.pipe.ops_per_sec", {"test": "pipe"}, (304931.461202,), "ops/s", "higher"),
    ("netperf.txt", "netperf.Throughput_Mbps", {"test": "TCP_STREAM"}, (28311.52,), "Mbit/s", "higher"),
    ("netperf.txt", "netperf.Throughput_tps", {"test": "TCP_RR"}, (41873.06,), "1/s", "higher"),
    (
        *("page_fault1.csv", "will-it-scale.per_process_ops", {"test": "page_fault1", "nr_task": "2"}),
        *((393102.0,), "ops/s", "higher"),
    ),
    (
        *("composite.xml", "phoronix-test-suite.compress-7zip.result", {"test": "pts/compress-7zip-1.10.0"}),
        *((8011.0, 8035.0, 8017.0), "MIPS", "higher"),
    ),
    ("composite.xml", "phoronix-test-suite.build-linux-kernel.result", {}, (411.9, 413.1), "Seconds", "lower"),
    ("kselftest.tap", "kselftest.page_fault", {}, (812.0,), "ns", ""),
    ("kselftest.tap", "kselftest.throughput", {}, (1034.5,), "MB/s", ""),
    ("criterion.jsonl", "criterion.time", {"test": "norm"}, (4140.0, 4130.0, 4140.0), "ns", "lower"),
    ("criterion-raw.csv", "criterion.time", {"test": "walk/iterative"}, (9150.0, 9200.0), "ns", "lower"),
    ("bencher.json", "bencher.latency", {"test": "folio_walk"}, (88.2,), "ns", "lower"),
    ("plain.csv", "mybench.p99", {}, (31.5, 31.9), "us", "lower"),
)


@pytest.mark.parametrize(("name", "wanted", "params", "samples", "unit", "direction"), SAYS)
def test_a_file_says_its_numbers(
    name: str, wanted: str, params: dict[str, str], samples: tuple[float, ...] | None, unit: str, direction: str
) -> None:
    value = metric(read_file(file(name)), wanted, **params)
    assert (value.unit, value.direction) == (unit, direction)
    assert value.samples == pytest.approx(samples) if samples else value.samples


def test_every_format_has_a_file() -> None:
    readers = {reader_of(Document(path.name, path.read_text())) for path in FILES}
    assert readers == set(FORMATS)


def test_every_run_of_hyperfine_is_a_sample() -> None:
    times = json.loads((FOLDER / "hyperfine.json").read_text())["results"][1]["times"]
    assert metric(read_file(file("hyperfine.json")), "hyperfine.time", command="sleep 0.02").samples == tuple(times)


def test_repetitions_and_aggregates_are_kept_apart() -> None:
    runs = [
        run["real_time"]
        for run in json.loads((FOLDER / "google-benchmark.json").read_text())["benchmarks"]
        if run["run_type"] == "iteration" and run["run_name"] == "BM_Fill/64"
    ]
    name = "google-benchmark.real_time"
    assert metric(read_file(file("google-benchmark.json")), name, test="BM_Fill/64").samples == tuple(runs)
    alone = metric(read_file(file("google-benchmark-aggregates.json")), name, test="BM_Fill/64")
    assert not alone.samples
    assert alone.summary
    assert alone.summary.n == 4


def test_what_ran_where_is_read_where_the_file_has_it() -> None:
    reading = read_file(file("stress-ng.yaml"))
    assert (reading.tool, reading.kernel, reading.machine, reading.cpus) == (
        "stress-ng 0.15.06", "6.18.44-fc-v669",
        "vm", 2,
    )  # fmt: skip
    assert read_file(file("composite.xml")).kernel == "6.12.0"
    reading = read_file(file("cyclictest.json"))
    assert (reading.tool, reading.kernel, reading.machine) == ("cyclictest 2.40", "6.18.44-fc-v669", "vm")


def test_fio_may_warn_before_its_json_and_give_microseconds() -> None:
    old = {
        "fio version": "fio-2.21",
        "jobs": [
            {
                "jobname": "j",
                "error": 0,
                "write": {"total_ios": 0},
                "read": {"total_ios": 9, "bw": 2048, "iops": 512.5, "clat": {"N": 9, "mean": 61.5}},
            }
        ],
    }
    reading = read_file(File("old.json", f"fio: this job is slow\n{json.dumps(old)}"))
    assert metric(reading, "fio.read_bw_MBps").samples == (2.0,)
    assert metric(reading, "fio.read_clat_mean_us").samples == (61.5,)


def test_several_runs_in_one_file_are_samples() -> None:
    twice = File("twice.txt", 2 * (FOLDER / "hackbench.txt").read_text())
    assert metric(read_file(twice), "hackbench.time").samples == (0.226, 0.226)
    two = File("two.txt", "".join((FOLDER / "sysbench-cpu.txt").read_text() for _ in range(2)))
    assert metric(read_file(two), "sysbench.events_per_sec").samples == (894.59, 894.59)


@pytest.mark.parametrize("option", ["--json=2.json", "--js old runs/1.json", "--histfile=h --json 3.json"])
def test_where_cyclictest_wrote_its_file_is_no_parameter(option: str) -> None:
    moved = read_file(file("cyclictest.json", lambda text: text.replace("--json=cyclictest.json", option)))
    assert {test.params["options"] for test in moved.tests} == {"-q -l 2000 -t 2"}


def test_cyclictest_may_run_for_a_time_instead_of_all_loops() -> None:
    timed = file("cyclictest.json", lambda text: text.replace("-l 2000", "-l 900000 -mD2"))
    assert metric(read_file(timed), "cyclictest.latency_max_us", test="thread 0").samples == (7042.0,)


# --- What is wrong with them ---

Edits = tuple[tuple[str, str], ...]
# file, what is replaced in it, the faults that must be told: place, and words of the reason
WRONG: tuple[tuple[str, Edits, tuple[tuple[str, str], ...]], ...] = (
    (
        "fio-1.json",
        (('"error" : 0', '"error" : 28'), ('"bw" : 39880', '"bw" : NaN')),
        (("/jobs/0/error", "failed with error 28"), ("/jobs/0/read/bw", "found nan")),
    ),
    ("fio-1.json", (('"iops" : ', '"iops" : "many", "iops" : '),), (("/jobs/0/read", "stands twice"),)),
    (
        "fio-1.json",
        (
            ('"runtime" : "1"', '"runtime" : "1", "time_based" : "1"'),
            ('"job_runtime" : 100', '"job_runtime" : 30, "x" : 1'),
        ),
        (("/jobs/0/job_runtime", "expected 1 s, found 0.03 s"),),
    ),
    ("fio-1.json", (('"jobs" : [', '"jobs" : {'),), (("line ", "cut short"),)),
    (
        "hyperfine.json",
        (
            ('"times": [\n        0.05339129', '"times": [\n        -1'),
            ('"exit_codes": [\n        0', '"exit_codes": [\n        3'),
        ),
        (("/results/0/times/0", "above 0"), ("/results/0/exit_codes/0", "expected exit code 0, found 3")),
    ),
    (
        "hyperfine.json",
        (('"command": "sleep 0.02"', '"command": "sleep 0.05"'),),
        (("/results/1/command", "stands twice"),),
    ),
    ("hyperfine.json", (("0.059925014000000006", "Infinity"),), (("/results/0/times/1", "found inf"),)),
    ("hyperfine.json", (('"times"', '"tmes"'),), (("/results/0/times", "expected a list of numbers"),)),
    (
        "google-benchmark.json",
        (('"time_unit": "ns"', '"time_unit": "us"'), ('"real_time": 9.7', '"real_time": "x", "rt": 9.7')),
        (("/benchmarks/1/time_unit", "mixed units"), ("/benchmarks/0/real_time", "expected a number")),
    ),
    (
        "google-benchmark.json",
        (('"time_unit": "ns"', '"time_unit": "min"'),),
        (("/benchmarks/0/time_unit", "expected one of"),),
    ),
    (
        "google-benchmark.json",
        (('"threads": 1,', '"threads": 1, "error_occurred": true, "error_message": "no memory",'),),
        (("/benchmarks/0", "no memory"),),
    ),
    ("google-benchmark.json", (('"cpu_time": 3', '"cpu_time": -3'),), (("/benchmarks/0/cpu_time", "at least 0"),)),
    ("pytest-benchmark.json", (('"stats": {', '"stats": {"data": [], "old": {'),), (("line ", "not JSON"),)),
    (
        "pytest-benchmark.json",
        (('"data": [', '"data": ["x", null,'),),
        (("/benchmarks/0/stats/data/0", "'x'"), ("/benchmarks/0/stats/data/1", "none")),
    ),
    (
        "pytest-benchmark.json",
        (('"fullname"', '"full"'), ('"name"', '"nom"')),
        (("/benchmarks/0/fullname", "expected a text"),),
    ),
    ("pytest-benchmark.json", (('"data": [', '"data": {"a": ['),), (("line ", "not JSON"),)),
    (
        "iperf3-tcp.json",
        (('"end":	{', '"error": "unable to connect", "end":	{'),),
        (("/error", "unable to connect"),),
    ),
    ("iperf3-tcp.json", (('"sum_sent"', '"sent"'), ('"sum_received"', '"received"')), (("/end", "cut short"),)),
    (
        "iperf3-udp.json",
        (
            ('"jitter_ms":	0.003032470703125', '"jitter_ms":	"0,3"'),
            ('"jitter_ms":	0.003032470703125', '"jitter_ms":	"0,3"'),
        ),
        (("/end, jitter_ms", "expected a number"),),
    ),
    (
        "perf-stat.json",
        (('"counter-value" : "1.018157"', '"counter-value" : "1,018157"'),),
        (("line 3", "expected a number"),),
    ),
    ("perf-stat.json", (('"event" : "page-faults"', '"event" : "task-clock"'),), (("line 6", "stands twice"),)),
    (
        "perf-stat.json",
        (('"counter-value" : "1.018157"', '"interval" : 1.0, "counter-value" : "1.0"'),),
        (("line 3", "interval"),),
    ),
    ("perf-stat.json", (('"metric-unit" : "CPUs utilized"}', '"metric-un'),), (("line 3", "cut short"),)),
    (
        "perf-stat.csv",
        (("1.06,msec,task-clock", "x,msec,task-clock"), ("75,,page-faults", "nan,,page-faults")),
        (("line 3", "'x'"), ("line 6", "nan")),
    ),
    ("perf-stat.csv", (("75,,page-faults,0.44%,1063129,100.00,71.018,K/sec", "75"),), (("line 6", "cut short"),)),
    (
        "perf-bench-sched-pipe.txt",
        (("289552 ops/sec", "many ops/sec"), ("3.453600 usecs", "nan usecs")),
        (("line 6", "nan"), ("line 7", "'many'")),
    ),
    (
        "perf-bench-sched-pipe.txt",
        (("     Total time: 0.017 [sec]\n\n       3.453600 usecs/op\n         289552 ops/sec", ""),),
        (("line 1", "cut short"),),
    ),
    (
        "sysbench-cpu.txt",
        (("General statistics:", ""), ("894.59", "-894.59")),
        (("line 1", "cut short"), ("line 15", "at least 0")),
    ),
    (
        "sysbench-cpu.txt",
        (("avg:                                    1.11", "avg:                                    nan"),),
        (("line 23", "nan"),),
    ),
    (
        "schbench.txt",
        (("average rps: 9002.27", "average rps: nan"), ("99.0th: 41 ", "99.0th: x ")),
        (("line 4", "'x'"), ("line 18", "nan")),
    ),
    ("schbench.txt", (("percentiles (usec)", "percentiles (weeks)"),), (("line 1", "expected usec"),)),
    ("hackbench.txt", (("Time: 0.226", "Time: -1"),), (("line 3", "more than 0"),)),
    ("hackbench.txt", (("Time: 0.226", ""),), (("line 1", "cut short"),)),
    ("hackbench.txt", (("Time: 0.226", "Time: inf"),), (("line 3", "inf"),)),
    (
        "cyclictest.json",
        (('"max": 7042', '"max": NaN'), ('"avg": 103.31', '"avg": -1')),
        (("/thread/0/max", "found nan"), ("/thread/1/avg", "at least 0")),
    ),
    (
        "cyclictest.json",
        (('"return_code": 0', '"return_code": 1'), ('"num_threads": 2', '"num_threads": 4')),
        (("/return_code", "the run failed"), ("/thread", "expected 4 threads, found 2")),
    ),
    (
        "cyclictest.json",
        (('"cycles": 2000', '"cycles": 980'), ('"cycles": 1346', '"cycles": 655')),
        (("/thread", "a run cut short: expected 2000 cycles, found 980"),),
    ),
    (
        "cyclictest.json",
        (('"cycles": 1346', '"cycles": 0'), ('"min": 20', '"min": 7100'), ('"sysinfo"', '"system"')),
        (("/thread/1/cycles", "found none"), ("/thread/0", "in this order"), ("/sysinfo", "expected an object")),
    ),
    ("cyclictest.json", (('    "1": {', '    "0": {'),), (("/thread", "stands twice"),)),
    ("cyclictest.json", (('"resolution_in_ns": 0', '"resolution_in_ns": 9'),), (("/resolution_in_ns", "found 9"),)),
    ("cyclictest.json", (('"cpu": 1,\n      "node": 0\n    }\n  }\n}', '"cpu": 1,'),), (("line ", "cut short"),)),
    (
        "stress-ng.yaml",
        (("stressor: pipe", "stressor: cpu"), ("425.566026", "nan")),
        (("/metrics/1/stressor", "stands twice"), ("/metrics/0/", "nan")),
    ),
    ("stress-ng.yaml", (("metrics:\n", "metrics: [\n"),), (("line ", "can't read YAML"),)),
    (
        "stress-ng.yaml",
        (("bogo-ops-per-second-real-time: 304931.461202", ""),),
        (("/metrics/1/", "expected a number, found none"),),
    ),
    ("netperf.txt", (("28311.52", "fast"), ("41873.06", "inf")), (("line 7", "'fast'"), ("line 14", "inf"))),
    ("netperf.txt", (("131072  16384  16384    10.00    28311.52   \n", ""),), (("line 1", "cut short"),)),
    (
        "page_fault1.csv",
        (("402311,50.10", "x,50.10"), ("786204,0.25,", "")),
        (("line 3", "'x'"), ("line 4", "expected 6 values")),
    ),
    ("page_fault1.csv", (("2,786204", "1,786204"),), (("line 4", "stand twice"),)),
    (
        "composite.xml",
        (("8011:8035:8017", "8011:x:nan"), ("LIB", "UP")),
        (("Result 1", "'x'"), ("Result 1", "nan"), ("Result 2", "HIB or LIB")),
    ),
    ("composite.xml", (("</PhoronixTestSuite>", ""),), (("line ", "not XML"),)),
    (
        "composite.xml",
        (("<PhoronixTestSuite>", '<!DOCTYPE x [<!ENTITY a "b">]><PhoronixTestSuite>'),),
        (("", "document type"),),
    ),
    (
        "composite.xml",
        (("</Entry></Data>", "</Entry><Entry><Identifier>other</Identifier><Value>1</Value></Entry></Data>"),),
        (("Result 1", "2 entries"),),
    ),
    (
        "kselftest.tap",
        (("ok 2 read_all", "not ok 2 read_all"), ("1..3", "1..5")),
        (("line 5", "failed"), ("line 2", "2 of the planned")),
    ),
    ("criterion.jsonl", (("[30,60,90]", "[30,60]"),), (("line 1", "found 2"),)),
    (
        "criterion.jsonl",
        (('"measured_values":[124200.0', '"measured_values":["x"'), ('"unit":"ns"', '"unit":""')),
        (("line 1/times/0", "'x'"), ("line 1, /unit", "expected a text")),
    ),
    (
        "criterion-raw.csv",
        (("915000,ns,100", "nan,ns,100"), ("1840000,ns,200", "1840000,us,0")),
        (("line 2", "nan"), ("line 3", "mixed units"), ("line 3", "above 0")),
    ),
    (
        "bencher.json",
        (("88.2", "NaN"), ('"value": 5550000', '"value": "x"')),
        (("/folio_walk/latency/value", "nan"), ("/folio_walk/throughput/value", "'x'")),
    ),
    (
        "plain.csv",
        (("70412", "fast"), ("ops/s,higher,70398,2", "ops/min,more,70398,1"), ("us,lower,31.9,2", "us,lower,31.9")),
        (
            ("line 2", "'fast'"),
            ("line 3", "mixed units"),
            ("line 3", "higher, lower or empty"),
            ("line 3", "run 1"),
            ("line 5", "expected 5 values"),
        ),
    ),
)


@pytest.mark.parametrize(("name", "edits", "expected"), WRONG)
def test_all_faults_of_a_file_are_told(name: str, edits: Edits, expected: tuple[tuple[str, str], ...]) -> None:
    told = faults(name, *edits)
    for place, words in expected:
        assert any(at.startswith(place) and words in why for at, why in told), (place, words, told)


@pytest.mark.parametrize("text", ["", "   \n", "hello", "{", "[]", "{}", "[1, 2]", "nan", "<x/>", "a,b\n1,2\n", "\0"])
def test_what_no_tool_wrote_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(RejectedInput) as rejection:
        read_file(File("x", text))
    assert "\n" not in str(rejection.value)


@given(st.sampled_from(FILES), st.data())
def test_a_damaged_file_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    start, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 40))
    junk = data.draw(st.sampled_from(("", "nan", "-1", '"', "}", "1e999", "\0", "[", ",", "9" * 400, "<", "é\n")))
    try:
        reading = read_file(File("x", text[:start] + junk + text[start + length :]))
    except RejectedInput:
        return
    for test in reading.tests:
        assert all(abs(sample) < float("inf") for metric in test.metrics for sample in metric.samples)


# --- One kernel against another ---


def fio(speed: float, **options: object) -> File:
    job = {"jobname": "j", "error": 0, "job options": {"rw": "read", "bs": "4k", **options}, "write": {"total_ios": 0}}
    job["read"] = {"total_ios": 9, "bw": speed, "iops": speed / 4}
    return File(f"{speed}.json", json.dumps({"fio version": "fio-3.33", "jobs": [job]}))


def test_a_change_is_what_a_few_lines_of_python_compute() -> None:
    old, new = [10240.0, 10300, 10199, 10256], [8010.0, 8123, 8077, 8050]
    result = compare(ABOUT, [fio(speed) for speed in old], [fio(speed) for speed in new], "x")
    headline = result.headline
    assert headline.metric in ("fio.read_bw_MBps", "fio.read_iops")
    assert headline.new.mean / headline.old.mean == pytest.approx(statistics.mean(new) / statistics.mean(old))
    assert (headline.old.n, headline.new.n) == (4, 4)
    assert result.culprit
    assert (result.culprit.sha, result.culprit.author_email) == (CULPRIT, "dana@dev.example")
    assert not result.doubt


def test_a_stored_comparison_reads_the_same_again() -> None:
    result = compare(ABOUT, [fio(100)], [fio(90)], "x")
    assert parse(json.loads(result.payload), "x") == result


def test_what_was_measured_differently_is_compared_and_doubted() -> None:
    other = File("o.json", fio(90, bs="64k").text.replace("fio-3.33", "fio-3.36"))
    result = compare(ABOUT, [fio(100)], [other], "x")
    assert "the parent was measured with fio-3.33, the culprit with fio-3.36" in result.doubt
    assert "bs 4k and 64k" in result.doubt
    newer = File("n.json", fio(101).text.replace("fio-3.33", "fio-3.36"))
    mixed = compare(ABOUT, [fio(100), newer], [newer, fio(90)], "x").doubt
    assert mixed == "different versions of a tool: each kernel was measured with fio-3.33, fio-3.36"


def test_all_faults_of_all_files_and_of_the_options_are_told_at_once() -> None:
    broken = [File("a.json", fio(100).text.replace("100,", "NaN,")), File("b.json", "{"), fio(90)]
    with pytest.raises(RejectedInput) as rejection:
        compare(RunContext(commit="a" * 12, author="nobody"), broken, [], "x")
    places = [place for place, _ in rejection.value.faults]
    assert [place.split(",")[0] for place in places] == ["a.json", "b.json", "commit", "base", "author", "machine"]


def test_mixed_units_in_the_files_of_one_kernel_are_a_fault() -> None:
    one, other = file("plain.csv"), file("plain.csv", lambda text: text.replace("ops/s", "kops/s"))
    with pytest.raises(RejectedInput, match="mixed units"):
        compare(ABOUT, [one, other], [one], "x")


def test_different_tests_are_not_compared() -> None:
    with pytest.raises(RejectedInput, match="none in common"):
        compare(ABOUT, [file("hackbench.txt")], [file("schbench.txt")], "x")


def test_a_job_file_says_which_commit_where_and_what() -> None:
    job = "commit: {}\ntestcase: disk\ntbox_group: lab7-m1\nnr_cpu: 8\nbranch: linus/master\n"
    sides = [[fio(speed), File("run/job.yaml", job.format(sha))] for speed, sha in ((100, PARENT), (90, CULPRIT))]
    result = compare(RunContext(title="x", author="a@b.example"), *sides, "x")
    assert (result.good.sha, result.bad.sha, result.tree, result.branch) == (PARENT, CULPRIT, "linus", "master")
    assert (result.runs[0].suite, result.runs[0].machine.id, result.runs[0].machine.cpus) == ("disk", "lab7-m1", 8)
    assert result.headline.metric.startswith("disk.read_")


def test_the_files_of_one_kernel_make_points_on_curves() -> None:
    result = of_kernel("6.12", RunContext(machine="m1"), [fio(100), fio(110)], "2026-11-01T00:00:00+00:00", "x")
    assert result.kernel.name == "v6.12"
    [test] = result.tests
    assert {measured.metric: measured.samples for measured in test.measurements}["fio.read_iops"] == (25.0, 27.5)


def test_a_kernel_is_named_by_the_file_if_nobody_else_does() -> None:
    result = of_kernel("", RunContext(), [file("composite.xml")], "2026-11-01T00:00:00+00:00", "x")
    assert (result.kernel.name, result.tests[0].machine.id) == ("v6.12", "lab7-m1")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("6.12.0", "v6.12"),  # as `uname -r` says it
        ("6.12.0-rc3", "v6.12-rc3"),
        ("v6.12.0", "v6.12"),
        ("6.12.1", "v6.12.1"),
        ("v2.6.0", "v2.6.0"),
        ("custom", "custom"),
    ],
)
def test_a_kernel_has_the_name_of_its_tag(said: str, name: str) -> None:
    assert of_kernel(said, RunContext(machine="m1"), [fio(100)], "2026-11-01T00:00:00+00:00", "x").kernel.name == name


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("page_fault1.csv", "page_fault1"),
        ("page_fault1-2.csv", "page_fault1"),
        ("v6.12-page_fault1.csv", "v6.12-page_fault1"),
        ("v6.12-page_fault2.csv", "v6.12-page_fault2"),
    ],
)
def test_the_runs_of_a_will_it_scale_test_are_its_files(name: str, case: str) -> None:
    text = "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n1,10,50,9,50,10\n"
    reading = kernel_benchmarks.read_will_it_scale(Document(name, text))
    assert {test.params["test"] for test in reading.tests} == {case}


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("stress-ng.yaml", "\n...\n", "\n", "expected the three dots"),
        ("hackbench.txt", "Time: 0.226", "Time: 0.", "expected three decimals"),
        ("hackbench.txt", "Time: 0.226", "Time: 0.000", "more than 0"),
        ("perf-bench-sched-pipe.txt", "289552 ops/sec", "0 ops/sec", "more than 0"),
        ("sysbench-cpu.txt", "894.59", "894,59", "'894,59'"),
        ("perf-stat.csv", "1.06,msec", "1,06,msec", "a decimal comma"),
        ("perf-stat.json", '"event" : "task-clock"', '"evnt" : "task-clock"', "expected the name of an event"),
    ],
)
def test_a_damaged_run_is_never_a_sample(name: str, old: str, new: str, words: str) -> None:
    assert any(words in why for _, why in faults(name, (old, new)))


_GONE = tuple((f"{speed} GB/sec\n", "") for speed in ("20.777926", "16.276042", "13.196791", "15.258789"))
MORE_DAMAGE: tuple[tuple[str, Edits, int], ...] = (
    ("iperf3-tcp.json", (('"bits_per_second":\t11653778849.190643', '"bits_per_second":\tNaN'),), 1),
    ("iperf3-tcp.json", (('"protocol":\t"TCP"', '"protocol":\t"TCP",\n\t\t\t"protocol":\t"UDP"'),), 1),
    ("sysbench-memory.txt", (("1981230.70 per", "many per"), ("1934.80 MiB", "-1 MiB")), 2),
    ("sysbench-fileio.txt", (("31131.81", "nan"), ("486.43", "x"), ("General statistics:", "")), 3),
    ("perf-bench-mem-memcpy.txt", (("20.777926 GB", "fast GB"), ("16.276042 GB", "nan GB"), ("13.196791", "0")), 3),
    ("perf-bench-mem-memcpy.txt", _GONE, 1),
    ("perf-stat.csv", (("1.06,msec", "x,msec"), ("1,,context", "nan,,context"), ("75,,page", "-1,,page")), 3),
)


@pytest.mark.parametrize(("name", "edits", "number"), MORE_DAMAGE)
def test_every_fault_is_counted_once(name: str, edits: Edits, number: int) -> None:
    assert len(faults(name, *edits)) == number


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        ("20.5 GB/sec", 20.5),
        ("512.000000 MB/sec", 0.5),
        ("524288.000000d KB/sec", 0.5),
        ("268435456.000000 bytes/sec", 0.25),
    ],
)
def test_a_rate_of_perf_bench_is_one_metric_whatever_unit_it_is_written_in(line: str, rate: float) -> None:
    text = file("perf-bench-mem-memcpy.txt", lambda text: re.sub(r"20\.777926 GB/sec", line, text))
    value = metric(read_file(text), "perf-bench-mem-memcpy.GB_per_sec", function="default")
    assert (value.samples, value.unit) == ((rate,), "GB/s")


def test_a_time_of_google_benchmark_is_in_ns_whatever_unit_its_benchmark_has() -> None:
    slow = file("google-benchmark.json", lambda text: text.replace('"time_unit": "ns"', '"time_unit": "us"'))
    of = {"test": "BM_Fill/64"}
    before, after = (
        metric(read_file(each), "google-benchmark.real_time", **of) for each in (file("google-benchmark.json"), slow)
    )
    assert (before.unit, after.unit) == ("ns", "ns")
    assert after.samples == pytest.approx([1000 * sample for sample in before.samples])


STREAM = """\
MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 10.0.0.2 () port 0 AF_INET : demo
Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Send     Recv     Send    Recv
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    10^6bits/s  % S      % S      us/KB   us/KB

131072  16384  16384    10.00      9414.00   4.02     12.10    0.140   0.421
"""
PINGPONG = """\
MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0 AF_INET to 10.0.0.2 () port 0 AF_INET : first burst 0
bytes  bytes  bytes   bytes  secs.   per sec  % S    % S    us/Tr   us/Tr

16384  87380  1       1      10.00   24012.00  10.21  11.02  34.017  36.712
16384  87380
"""


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (STREAM, "netperf.Throughput_Mbps", 9414.0),
        (PINGPONG, "netperf.Throughput_tps", 24012.0),
        ("# Running 'epoll/ctl' benchmark:\n\nAveraged 148224 ADD operations (+- 2%)\n", "*.add_ops", 148224.0),
        (
            "# Running 'internals/kallsyms-parse' benchmark:\n  Average kallsyms__parse took: 89.1 ms (+- 1 ms)\n",
            "*",
            89.1,
        ),
        (
            "# Running 'futex/wake-parallel' benchmark:\nAvg per-thread latency (waking 1/2) in 0.02 ms (+-3%)\n",
            *("*.time_ms", 0.02),
        ),
        (
            "# Running 'numa/mem' benchmark:\n RAM-bw-local,  3.229, GB/sec,   total-speed\n",
            "*.ram-bw-local_GB_per_sec",
            3.229,
        ),
        (
            "KTAP version 1\n1..1\n# crc_benchmark: len=16: 2934 MB/s\nok 1 crc_benchmark\n",
            *("kselftest.crc_benchmark_len_16", 2934.0),
        ),
        (
            "sysbench 1.1.0-bd4b418 (using LuaJIT)\nNumber of threads: 8\n\nThroughput:\n"
            "    events/s (eps):  1666.5\n    time elapsed:  60.0s\n    total number of events: 100001\n",
            *("sysbench.events_per_sec", 1666.5),
        ),
    ],
)
def test_the_number_of_a_benchmark_is_read_in_each_of_its_forms(text: str, name: str, value: float) -> None:
    numbers = {one.name: one.samples for test in read_file(File("x.txt", text)).tests for one in test.metrics}
    assert [samples for key, samples in numbers.items() if fnmatch(key, name)] == [(value,)]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("sysbench-cpu.txt", "limit: 10000", "limit: 20000"),
        ("sysbench-memory.txt", "operation: write", "operation: read"),
        ("perf-bench-mem-memcpy.txt", "# Copying 1MB bytes", "# Copying 4MB bytes"),
        ("fio-1.json", '"bs" : "4k"', '"bs" : "4k", "sync" : "1"'),
        ("fio-1.json", '"bs" : "4k"', '"bssplit" : "4k/50:64k/50"'),
    ],
)
def test_other_work_is_another_test(name: str, old: str, new: str) -> None:
    before = read_file(file(name)).tests
    after = read_file(file(name, lambda text: text.replace(old, new))).tests
    assert {str(test.params) for test in before} != {str(test.params) for test in after}


def test_the_mutex_and_threads_tests_of_sysbench_are_not_one() -> None:
    head = "sysbench 1.0.20 (using LuaJIT)\nNumber of threads: 2\n\nGeneral statistics:\n    total time: 1.0s\n"
    texts = (f"{head}    total number of events:  {events}\n" for events in (2, 399))
    tests = [read_file(File("x.txt", text)).tests[0].params["test"] for text in texts]
    assert tests == ["mutex", "unknown"]


def test_a_curve_through_sizes_is_no_run_of_a_benchmark() -> None:
    fit = {"name": "BM_Fill_BigO", "run_name": "BM_Fill", "run_type": "aggregate", "aggregate_name": "BigO"}
    whole = json.loads(file("google-benchmark.json").text)
    whole["benchmarks"] += [fit, {**fit, "name": "BM_Fill_RMS", "aggregate_name": "RMS"}]
    with_fit = read_file(File("x.json", json.dumps(whole)))
    assert with_fit.tests == read_file(file("google-benchmark.json")).tests


def test_what_iperf3_repeats_of_its_sockets_is_no_fault() -> None:
    start = '"start": {\n    "sock_bufsize": 0, "sock_bufsize": 0,'
    tests = read_file(file("iperf3-tcp.json", lambda text: re.sub(r'"start":\s*{', start, text, count=1))).tests
    assert tests == read_file(file("iperf3-tcp.json")).tests


@pytest.mark.parametrize("more", ["\n{}", '\n{"fio version": "fio-3.33", "jo', "}}}", "\n[{}]"])
def test_a_file_with_more_json_behind_its_run_is_refused(more: str) -> None:
    ((place, why),) = faults("fio-1.json", (file("fio-1.json").text, file("fio-1.json").text.rstrip() + more))
    assert place.startswith("line ")
    assert why == "expected one run a file, found more JSON behind it"


@pytest.mark.parametrize("more", ["\n[  123.4] nvme nvme0: timeout", "\n[root@host ~]#", f"{chr(10) * 60_000}x", " ok"])
def test_text_behind_the_json_is_no_second_run(more: str) -> None:
    """Nor does it cost more than its length."""
    text = file("fio-1.json").text
    assert read_file(File("fio-1.json", text.rstrip() + more)).tests == read_file(file("fio-1.json")).tests


def test_a_second_run_behind_a_warning_is_refused() -> None:
    text = file("fio-1.json").text
    with pytest.raises(RejectedInput, match="expected one run a file"):
        read_file(File("x.json", f"fio: a note\n{text}\n{text}"))


@pytest.mark.parametrize(
    "line",
    [
        "veth mac: 52:54:00:12:34:5b",
        "addr: 2001:db8::2a",
        "Start: 2026-12-01 12:00:05 UTC",
        "at 10:15:32 AM",
        "a: b: 5",
    ],
)
def test_no_address_and_no_time_is_a_number_of_a_test(line: str) -> None:
    text = f"KTAP version 1\n1..1\n# {line}\n# throughput: 5 MB/s\nok 1 a\n"
    assert [one.name for test in read_file(File("x.tap", text)).tests for one in test.metrics] == [
        "kselftest.throughput"
    ]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("6.1.0-44-amd64", True), ("6.11.3-arch1-1", True), ("v6.12-rc3", True), ("6.12", True), ("a1b2c3d4e5f6", False)],
)
def test_a_version_is_no_commit(name: str, is_one: bool) -> None:
    assert is_version(name) is is_one


def test_netperf_has_one_unit_in_both_of_its_forms() -> None:
    omni = File("omni.txt", "THROUGHPUT=28311.52\nTHROUGHPUT_UNITS=10^6bits/s\nPROTOCOL=TCP\n")
    (value,) = (one for test in read_file(omni).tests for one in test.metrics)
    assert value.unit == metric(read_file(file("netperf.txt")), "netperf.Throughput_Mbps", test="TCP_STREAM").unit


def test_a_run_without_a_metric_of_the_others_was_cut_short() -> None:
    whole = file("perf-bench-sched-pipe.txt")
    cut = file("perf-bench-sched-pipe.txt", lambda text: text.replace("         289552 ops/sec\n", ""))
    with pytest.raises(RejectedInput, match=r"expected ops_per_sec, as the other runs have it"):
        compare(ABOUT, [whole], [whole, cut], "x")


def test_one_bad_number_is_one_fault() -> None:
    told = faults("hyperfine.json", ("0.059925014000000006", "null"))
    assert [place for place, _ in told] == ["/results/0/times/1"]
    assert len(faults("hackbench.txt", ("0.226", "nan"))) == 1


def test_a_field_that_csv_refuses_is_a_fault() -> None:
    assert any("expected CSV" in why for _, why in faults("perf-stat.csv", ("1.06,msec", f"{'1' * 200_000},msec")))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("kselftest.tap", "ok 1 a" + " " * 200_000 + "b"),
        ("schbench.txt", " " * 200_000 + "x"),
        ("netperf.txt", " " * 200_000 + "x"),
        ("perf-bench-sched-pipe.txt", "Requeued " + " in" * 60_000),
    ],
)
def test_a_long_line_costs_no_more_than_its_length(name: str, line: str) -> None:
    """A pattern that tries every split of it would not end here."""
    with suppress(RejectedInput):
        read_file(File(name, f"{(FOLDER / name).read_text()}{line}\n"))


def test_more_objects_than_any_tool_writes_are_refused_unread() -> None:
    with pytest.raises(RejectedInput, match="at most 400,000 objects"):
        read_file(File("x", '{"fio version": "fio-3.33", "jobs": [' + "{}," * 400_001 + "{}]}"))


# --- Small files of one fault each ---


def _hyperfine(**changes: object) -> str:
    return json.dumps({"results": [{"command": "a", "times": [1.0, 1.1], "exit_codes": [0, 0], **changes}]})


def _pytest_benchmark(stats: object, **changes: object) -> str:
    one = {"fullname": "t.py::test_a", "stats": stats}
    return json.dumps({"machine_info": {"node": "box"}, "benchmarks": [one], "version": "5.1", **changes})


def _google(*runs: dict[str, object]) -> str:
    context = {"library_build_type": "release", "num_cpus": 8}
    usual = {"run_name": "BM_A", "real_time": 1.5, "cpu_time": 1.4, "time_unit": "ns"}
    return json.dumps({"context": context, "benchmarks": [{**usual, **run} for run in runs]})


def _iperf3(**changes: object) -> str:
    start = {"version": "iperf 3.12", "system_info": "Linux box 6.12.0 x", "test_start": {"protocol": "UDP"}}
    end = {"sum_sent": {"bits_per_second": 9e9}, "sum": {"jitter_ms": 0.01, "lost_percent": 0.5}}
    return json.dumps({"start": start, "end": end, **changes})


def _criterion(message: dict[str, object]) -> str:
    usual = {"reason": "benchmark-complete", "id": "a/b", "unit": "ns"}
    return json.dumps({**usual, "measured_values": [10, 22], "iteration_count": [1, 2], **message}) + "\n"


_CSV = "metric,unit,better,value,run\na.b,s,lower,1.5,1\n"
_PTS = "<PhoronixTestSuite>{}</PhoronixTestSuite>"
_RAW = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"
_OMNI = "THROUGHPUT=900\nTHROUGHPUT_UNITS=10^6bits/s\n"
_STREAM = "MIGRATED TCP STREAM TEST from 0.0.0.0\n10^6bits/sec\n\n87380 16384 16384 10.00 9000.1\n"
SMALL: tuple[tuple[str, str], ...] = (
    (_hyperfine(exit_codes=[0, 1]), "expected exit code 0, found 1"),
    (_hyperfine(exit_codes=[0]), "expected one for each of 2 runs, found 1"),
    (_hyperfine(times=[1.0, 0]), "expected seconds above 0"),
    (_hyperfine(user=-1), "expected at least 0"),
    (json.dumps({"results": [{"command": "a", "times": [1]}, {"command": "a", "times": [2]}]}), "stands twice"),
    (json.dumps({"results": [{"command": "a", "times": [1]}, 7]}), "expected an object"),
    (_google({"error_occurred": True, "error_message": "no disk"}), "BM_A failed: no disk"),
    (_google({"time_unit": "min"}), "expected one of ns, us, ms, s"),
    (_google({}, {"time_unit": "us"}), "mixed units of BM_A"),
    (_google({"items_per_second": "many"}), "expected a number, found 'many'"),
    (_google({"run_type": "aggregate", "aggregate_name": "median"}), "expected its repetitions, or the mean"),
    (_pytest_benchmark({"mean": 1.0, "stddev": 0.1}), "expected a number"),
    (_pytest_benchmark({"mean": 1.0, "stddev": 0.1, "rounds": 0}), "expected at least 1"),
    (_pytest_benchmark(7), "expected an object"),
    (_pytest_benchmark({}, benchmarks=[{"fullname": "a", "stats": {"data": [1]}}] * 2), "stands twice"),
    (_criterion({"measured_values": [1]}), "expected as many iteration counts as values (1), found 2"),
    (_criterion({"iteration_count": [0, 1]}), "expected iteration counts above 0"),
    (_criterion({}) + _criterion({}), "stands twice"),
    (_criterion({}) + "{", "not JSON, or cut short"),
    (f"{_RAW}g,f,,,,10,ns,1\ng,f,,,,11,us,1\n", "mixed units of g/f: ns and us"),
    (f"{_RAW}g,f,,,,10,ns,0\n", "expected an iteration count above 0"),
    (f"{_RAW}g,f,,,,10,ns,1\ng,f\n", "expected 8 values, found 2: a run cut short?"),
    (f'{_RAW}g,f,,,,10,ns,1\n"{"x" * 140_000}",f,,,,10,ns,1\n', "expected CSV"),
    (_PTS.format("<!ENTITY a 'b'>"), "without a document type"),
    (_PTS.format("<Result>"), "not XML, or cut short"),
    (_PTS.format("<Result></Result>"), "expected an Identifier"),
    (_PTS.format("<Result><Identifier>a</Identifier></Result>"), "the values of one kernel, found 0 entries"),
    (
        _PTS.format(
            "<Result><Identifier>a</Identifier><Proportion>UP</Proportion><Data><Entry></Entry></Data></Result>" * 2
        ),
        "expected the Proportion HIB or LIB, found 'UP'",
    ),
    (_CSV + "a.b,ms,lower,2,2\n", "mixed units of a.b: s and ms"),
    (_CSV + "a.b,s,higher,2,2\n", "mixed directions of a.b: lower and higher"),
    (_CSV + "a.b,s,lower,2,1\n", "run 1 of a.b stands twice"),
    (_CSV + "a.c,s,faster,2,1\n", "expected better to be higher, lower or empty"),
    (_CSV + ",s,lower,2,1\n", "expected the name of a metric"),
    (_CSV + "a.b,s,lower,2\n", "expected 5 values, found 4"),
    (_CSV.replace("run", "turn", 1), "expected metric,unit,better,value[,run]"),
    ("KTAP version 1\n1..2\nok 1 a # 812 ns\n", "1 of the planned tests are missing"),
    ("KTAP version 1\n1..1\nnot ok 1 a # 812 ns\n", "a failed: expected ok"),
    ("KTAP version 1\n1..1\nok 1 a\n", "expected tests with numbers, found none"),
    ("KTAP version 1\n# speed: 10 MB/s\n# speed: 11 GB/s\n", "mixed units of speed: MB/s and GB/s"),
    (json.dumps({"a": {"latency": {"value": "x"}}}), "expected a number, found 'x'"),
    (_iperf3(error="unable to connect"), "the run failed: unable to connect"),
    (_iperf3(end={"streams": []}), "expected sum_sent and sum_received, found neither"),
    (_iperf3(end={"sum_sent": {"bits_per_second": -1}}), "expected at least 0"),
    (_iperf3(end={"sum": {"jitter_ms": None}}), "expected a number"),
    (_STREAM + "TCP STREAM TEST from 0.0.0.0\n", "cut short: expected its throughput, found the end"),
    ("TCP STREAM TEST from 0.0.0.0\n" + _STREAM, "cut short: expected its throughput, found another run"),
    (_STREAM + "10^6bits/sec\n 1 2 3\n", "expected the title of the test before its numbers"),
    (_OMNI + "THROUGHPUT=901\n", "THROUGHPUT stands twice"),
    (_OMNI.replace("10^6bits", "10^9bits"), "expected 10^6bits/s or Trans/s"),
    (_OMNI + "P99_LATENCY=-1\n", "expected at least 0"),
)


@pytest.mark.parametrize(("text", "words"), SMALL)
def test_the_fault_of_a_small_file_is_told(text: str, words: str) -> None:
    with pytest.raises(RejectedInput) as rejection:
        read_file(File("run", text))
    assert any(words in why for _, why in rejection.value.faults), rejection.value.faults


def test_a_summary_of_rounds_has_the_deviation_of_a_population() -> None:
    """pytest-benchmark without `--benchmark-save-data`: its deviation is divided by n - 1, ours by n."""
    text = _pytest_benchmark({"mean": 2.0, "stddev": 0.4, "rounds": 4})
    summary = metric(read_file(File("run", text)), "pytest-benchmark.time", test="t.py::test_a").summary
    assert summary
    assert (summary.mean, summary.n) == (2.0, 4)
    assert summary.stddev == pytest.approx(0.4 * (3 / 4) ** 0.5)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("target/criterion/group/function/new/sample.json", "group/function"),
        ("group/function/new/sample.json", "group/function"),
        ("sample.json", "benchmark"),
    ],
)
def test_criterions_folders_name_their_benchmark(path: str, name: str) -> None:
    sample = json.dumps({"sampling_mode": "Flat", "iters": [1, 2], "times": [10, 22]})
    assert metric(read_file(File(path, sample)), "criterion.time", test=name).samples == (10, 11)


def test_the_sides_of_a_udp_run_are_told_apart() -> None:
    reading = read_file(File("run", _iperf3()))
    assert metric(reading, "iperf3.udp.sender.bps").samples == (9e9,)
    assert metric(reading, "iperf3.udp.lost_percent").samples == (0.5,)
    assert (reading.kernel, reading.machine) == ("6.12.0", "box")


def test_an_omni_run_of_netperf_has_its_latencies() -> None:
    reading = read_file(File("run", _OMNI + "P99_LATENCY=31\nPROTOCOL=TCP\n"))
    assert metric(reading, "netperf.Throughput_Mbps", test="TCP").samples == (900,)
    assert metric(reading, "netperf.p99_latency_us", test="TCP").samples == (31,)
