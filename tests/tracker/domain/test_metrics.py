"""Directions and units of metrics: names with the expected values, and the wording of real reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.domain.metrics import RULES, direction_of, is_key, rule_of, same_unit, unit_of

CASES = [
    # As etc/index-perf-all.yaml and index-latency-all.yaml of lkp-tests list them
    ("netpipe.bigger_5M_Mbps.avg", "higher", ""),
    ("netpipe.less_8K_usec.avg", "lower", ""),
    ("will-it-scale.scalability", "higher", ""),
    ("unixbench.System_Call_Overhead.score", "higher", ""),
    ("specjbb2015.median", "higher", ""),
    ("mutilate.read.speed", "higher", ""),
    ("apachebench.connection_time.processing.max", "lower", ""),
    ("kselftests.mqueue.nsec_per_msg", "lower", ""),
    ("phoronix-test-suite.osbench.CreateThreads.us_per_event", "lower", ""),
    ("pts.ctx-clock.clock.nanoseconds_operation", "lower", ""),
    ("pts.graph500.29.bfs_max_teps", "higher", ""),
    ("pts.openssl.rsa4096.sign_s", "higher", ""),
    ("pts.stockfish.nodes_second", "higher", ""),
    ("pts.sqlite.time_s", "lower", ""),
    ("pts.x.latency_s", "lower", ""),
    ("pts.x.elapsed_sec", "lower", "s"),
    ("pts.x.errors_per_sec", "lower", "errors/s"),
    ("pts.x.mb_s", "higher", ""),
    ("siege.failed_request_rate", "lower", ""),
    ("specjbb2015.median_latency", "lower", ""),
    ("x.requests_per_message", "unknown", ""),
    ("pts.build.microseconds", "lower", ""),
    ("iperf.udp.lost_percent", "lower", ""),
    ("siege.transaction_rate", "higher", ""),
    ("sysbench.reconnects_per_sec", "lower", "reconnects/s"),
    ("demo.failed_ops_per_sec", "lower", "ops/s"),
    ("demo.packet_loss", "lower", ""),
    ("demo.ops_per_watt", "higher", ""),
    ("demo.joules", "lower", ""),
    ("demo.ops_per_sec_cv%", "lower", "%"),
    ("demo.hit_ratio", "higher", ""),
    ("demo.hit_rate%", "higher", "%"),
    ("demo.success_rate", "higher", ""),
    ("demo.throughput_std", "lower", ""),
    ("demo.throughput_mad%", "lower", "%"),
    ("demo.ops_per_sec_spread%", "lower", "%"),
    ("demo.throughput_error%", "lower", "%"),
    ("memcached.latency_1ms%", "higher", "%"),
    ("demo.latency_under_10ms%", "higher", "%"),
    ("fio.latency_10ms%", "unknown", "%"),
    ("demo.ops/joule", "higher", ""),
    ("will-it-scale.104.processes", "higher", ""),
    ("siege.longest_transaction", "lower", ""),
    ("iperf.udp.loss_rate", "lower", ""),
    ("demo.evictions", "unknown", ""),
    ("demo.eviction_rate", "lower", ""),
    ("nuttcp.retrans", "lower", ""),
    ("demo.requests_timed_out", "lower", ""),
    ("demo.ipc", "higher", ""),
    ("demo.cycles/byte", "lower", ""),
    ("demo.peak_rss_kb", "lower", "kB"),
    ("demo.cycles_per_sec", "higher", "cycles/s"),
    ("demo.key_range", "unknown", ""),
    ("fio-basic.latency_2ms%", "lower", "%"),
    ("redis.set_avg_time_sec", "lower", "s"),
    ("aim7.jobs-per-min", "higher", "jobs/min"),
    ("boot-time.boot", "lower", ""),
    ("specjbb2015.critical-jOPS", "higher", ""),
    ("hpcc.HPL_Tflops", "higher", ""),
    ("postmark.transactions", "higher", ""),
    ("thrulay.RTT", "lower", ""),
    ("sockperf.under-load.std-dev", "lower", ""),
    ("stress-ng.dev-shm.page_faults_per_sec", "higher", "faults/s"),
    ("cyclictest.max", "lower", ""),
    ("demo.p95_ms", "lower", "ms"),
    ("demo.time.elapsed_time", "lower", "s"),
    ("demo.widgets_per_sec", "higher", "widgets/s"),
    ("filebench.sum_bytes_mb/s", "higher", "MB/s"),
    ("fio.latency_4ms%", "unknown", "%"),
    ("fio.read_bw_MBps", "higher", "MB/s"),
    ("fio.read_clat_99%_us", "lower", "us"),
    ("fio.write_iops", "higher", "IOPS"),
    ("fsmark.app_overhead", "lower", ""),
    ("fsmark.files_per_sec", "higher", "files/s"),
    ("ftq.noise.50%", "lower", "%"),
    ("fwq.fwq.med", "lower", ""),
    ("hackbench.throughput", "higher", ""),
    ("kbuild.real_time_per_iteration", "lower", ""),
    ("lmbench3.PIPE.latency.us", "lower", "us"),
    ("lmbench3.TCP.socket.bandwidth.64B.MB/sec", "higher", "MB/s"),
    ("mpstat.cpu.all.sys%", "unknown", "%"),
    ("netperf.Throughput_Mbps", "higher", "Mbit/s"),
    ("perf-profile.children.cycles-pp.do_syscall_64", "unknown", ""),
    ("perf-stat.i.cache-misses", "unknown", ""),
    ("pts.frames_per_second", "higher", "frames/s"),
    ("schbench.99.0th%_us", "lower", "us"),
    ("sockperf.tcp.avg_latency_ns", "lower", "ns"),
    ("stress-ng.msg.ops_per_sec", "higher", "ops/s"),
    ("unixbench.score", "higher", ""),
    ("vm-scalability.median", "higher", ""),
    ("widget.median", "unknown", ""),
    ("vm-scalability.throughput_fault", "higher", ""),
    ("vm-scalability.throughput_stddev%", "lower", "%"),
    ("vm-scan.ops_per_sec.stddev", "lower", ""),
    ("stress-ng.fault.ops_per_sec", "higher", "ops/s"),
    ("stress-ng.fork.nanosec per fork", "lower", ""),
    ("redis.set_latency_1ms%", "higher", "%"),
    ("redis.set_latency_99th", "lower", ""),
    ("memtier.Gets_Misses/s", "lower", "Misses/s"),
    ("pft.faults_per_sec_per_cpu", "higher", ""),
    ("iperf.tcp.receiver.bps", "higher", ""),
    ("stream.triad_GB_sec", "higher", "GB/s"),
    ("net.retransmits_per_sec", "lower", "retransmits/s"),
    ("will-it-scale.per_process_ops", "higher", "ops/s"),
    ("will-it-scale.time.user_time", "unknown", ""),
    ("", "unknown", ""),
    ("plain", "unknown", ""),
]


@pytest.mark.parametrize(("name", "direction", "unit"), CASES)
def test_what_a_name_says(name: str, direction: str, unit: str) -> None:
    assert (direction_of(name), unit_of(name)) == (direction, unit)


@pytest.mark.parametrize(
    ("name", "is_kpi"),
    [
        ("will-it-scale.per_process_ops", True),
        ("will-it-scale.scalability_score", False),
        ("will-it-scale.time.elapsed_time", False),
        ("stress-ng.fault.ops_per_sec", True),
        ("stress-ng.time.user_time", False),
        ("netperf.Throughput_Mbps", True),
        ("fio.read_iops", True),
        ("fio.read_clat_99%_us", False),
        ("vm-scalability.median", True),
        ("tbench.throughput-MB/sec", True),
        ("tbench.max_latency", False),
        ("pgbench.tps", True),
        ("sysbench-cpu.throughput_events/s", True),
        ("sysbench-cpu.latency_max_ms", False),
        ("sysbench-fileio.read_operations/s", True),
        ("autonuma-benchmark.numa01.seconds", True),
        ("perf-bench-numa-mem.GB_sec_thread", True),
        ("unheard-of.throughput", True),
        ("unheard-of.widgets", False),
        ("vmstat.cs", False),
    ],
)
def test_what_a_suite_is_run_for(name: str, is_kpi: bool) -> None:
    assert is_key(name) is is_kpi


def test_a_suite_with_dots_is_told() -> None:
    assert direction_of("a.b.throughput", "a.b") == "higher"
    assert direction_of("fwq.1.med", "fwq.1") == "unknown"


def test_every_line_says_how_it_knows_and_is_used() -> None:
    used = {id(rule_of(name)) for name, _, _ in CASES}
    used |= {
        id(rule_of(name))
        for name in ("will-it-scale.workload", "x.ns_per_op", "x.page_faults", "x.joules", "x.duration")
    }
    for rule in RULES:
        assert rule.why, rule
        assert id(rule) in used, f"no case for {rule}"


def test_the_table_agrees_with_the_words_of_real_reports(shared: Path) -> None:
    """A robot's verdict and the metric's own movement tell the direction that the lab believes in."""
    data = json.loads((shared / "reports-dev.json").read_text())
    reports = data if isinstance(data, list) else data["reports"]
    checked = 0
    for report in reports:
        raw = report.get("change_pct_raw")
        if not raw:
            continue
        higher = (report["verdict"] == "improvement") == (raw > 0)
        assert direction_of(report["metric"]) == ("higher" if higher else "lower"), report["metric"]
        checked += 1
    assert checked > 40


@given(st.text(max_size=400), st.text(max_size=30))
def test_any_name_has_an_answer(name: str, suite: str) -> None:
    assert direction_of(name, suite) in ("higher", "lower", "unknown")
    assert isinstance(unit_of(name), str)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        *(("msec", "ms", True), ("Seconds", "s", True), ("µs", "usecs", True), ("IOPS", "ops/s", True)),
        *(("events/s", "1/s", True), ("MB/sec", "MB/s", True), ("", "us", True), ("us", "1", True)),
        *(("us", "ms", False), ("MB/s", "Mb/s", False), ("k/s", "1/s", False), ("MB/s", "MiB/s", False)),
        *(("s", "min", False), ("jobs/min", "jobs/s", False), ("mW", "MW", False), ("MBps", "Mbps", False)),
        *(("Mbit/s", "Mbps", True), ("MBps", "MB/s", True), ("B/s", "bytes/s", True), ("us/op", "usec/op", True)),
        *(("rps", "1/s", True), ("%", "percent", True), ("J", "Joules", True), ("kB", "KB", True)),
    ],
)
def test_units_are_the_same_however_they_are_spelled(one: str, other: str, same: bool) -> None:
    assert same_unit(one, other) is same_unit(other, one) is same
