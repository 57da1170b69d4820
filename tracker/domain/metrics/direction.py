"""The direction of a metric where neither a lab nor an operator has set one: a table by suite and name. Pure.

A line's direction is what the benchmark itself calls better. To add a line, put it before any broader one that would
also match, say in `why` how you know, and add a metric that it matches to the test table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class DirectionRule:
    """`pattern` is searched for in the name without its suite, `suite` matches the whole suite; both ignore case.

    `why` is the provenance: how we know.
    """

    direction: str
    pattern: str
    why: str
    suite: str = ".*"


_MONITORS = (
    r"perf-(?:stat|profile|sched|node|c2c).*|mpstat|vmstat|iostat|proc-vmstat|(?:numa-)?(?:meminfo|vmstat|numastat)"
    r"|slabinfo|softirqs|interrupts|sched_debug|turbostat|cpuidle|uptime|sar|diskstats|nfsstat|kmsg|dmesg|pmeter"
)

# The first line that matches decides. A word in a name ends at ".", "_", "-" or its end: [._-].
RULES: tuple[DirectionRule, ...] = (
    # No direction of their own, though some of the names suggest one.
    DirectionRule("unknown", r".", "monitors watch the machine; only the benchmark's own numbers grade a change", _MONITORS),
    DirectionRule("unknown", r"^time\.(?!elapsed)", "counters of time(1), not of the benchmark: they grow with the work done"),
    DirectionRule("unknown", r"^latency_[<>]?=?\d+\w*%$", "fio's histogram: the share of one bucket, not a latency", "fio"),
    # By suite, where the name alone is misleading or says nothing.
    DirectionRule("higher", r"^median", "vm-scalability reports the median throughput of its threads", "vm-scalability"),
    DirectionRule("higher", r"^workload$", "will-it-scale counts the operations of all tasks in a fixed time", "will-it-scale"),
    DirectionRule("lower", r".", "fwq and ftq measure the time that the kernel takes from fixed work", "fwq|ftq"),
    DirectionRule("lower", r".", "these measure how late a task wakes up", "cyclictest|rtla.*|timerlat|osnoise|hwlatdetect"),
    DirectionRule("lower", r".", "how long the boot took, in seconds", "boot-time"),
    # Smaller is better: time, cost, waste.
    DirectionRule("lower", r"latenc(?:y|ies)|(?:^|[._-])[cs]?lat(?:[._-]|$)", "latency is time spent waiting"),
    DirectionRule("lower", r"overhead", "overhead is time that is not work; fsmark.app_overhead in 2019-2022 reports"),
    DirectionRule("lower", r"percentile|(?:^|[._-])p\d{1,3}(?:[._-]|$)|\d(?:th|st|nd|rd)(?:[._-]|$)",
         "percentiles are reported for latencies: fio, schbench, wrk, sockperf"),
    DirectionRule("lower", r"elapsed|(?:wall|run|exec(?:ution)?|completion|response|boot|real)[._-]?time", "how long it took"),
    DirectionRule("lower", r"(?:[num]?s|[num]?sec|seconds|time)[._-]?(?:per[._-]|/)(?:op|call|loop|iter|req)",
         "time per operation"),
    DirectionRule("lower", r"jitter|stall|(?:^|[._-])(?:miss|fault|error|drop|retransmit|timeout)(?:s|es|ed)?(?:[._-]|$)",
         "waiting and waste"),
    DirectionRule("lower", r"joule|energy|watt", "energy for the same work"),
    # Larger is better: work per time.
    DirectionRule("higher", r"(?:^|[._-])per[._-](?:sec(?:ond)?|min(?:ute)?|hour|process_ops|thread_ops)",
         "work per time: ops_per_sec, files_per_sec, jobs-per-min, will-it-scale.per_process_ops"),
    DirectionRule("higher", r"through?put|bandwidth|goodput|(?:^|[._-])bw(?:[._-]|$)", "throughput and bandwidth"),
    DirectionRule("higher", r"iops|(?:^|[._-])(?:ops|[tqrfp]ps|mips|[kmg]?flops)(?:[._-]|$)", "work per time, abbreviated"),
    DirectionRule("higher", r"[kmgt]i?b(?:ps|its?/s|ytes/s)|[kmgt]i?b[._-]per[._-]s|/s(?:ec|econd)?$", "an amount per second"),
    DirectionRule("higher", r"(?:^|[._-])(?:score|speed_?up|hit_?rate)(?:[._-]|$)", "scores and cache hit rates"),
    # Last, names that end in a unit of time.
    DirectionRule("lower", r"(?:^|[._-])(?:time|duration|delay|seconds|[num]s|[num]sec)$", "a time, by its unit"),
)  # fmt: skip


@lru_cache(maxsize=20_000)
def rule_of(metric: str, suite: str = "") -> DirectionRule | None:
    """Return the line that decides on "suite.rest"; by default, the suite is the part before the first dot."""
    suite = suite if suite and metric.startswith(f"{suite}.") else metric.partition(".")[0]
    name = metric.removeprefix(f"{suite}.")[:300]
    return next((rule for rule in RULES if _fits(rule.suite, suite) and _finds(rule.pattern, name)), None)


def direction_of(metric: str, suite: str = "") -> str:
    """Return "higher", "lower" or "unknown".

    >>> direction_of("fsmark.files_per_sec"), direction_of("demo.p95_ms"), direction_of("demo.widgets")
    ('higher', 'lower', 'unknown')
    """
    rule = rule_of(metric, suite)
    return rule.direction if rule else "unknown"


def _fits(pattern: str, suite: str) -> bool:
    return pattern == ".*" or re.fullmatch(pattern, suite, re.IGNORECASE) is not None


def _finds(pattern: str, name: str) -> bool:
    return re.search(pattern, name, re.IGNORECASE) is not None
