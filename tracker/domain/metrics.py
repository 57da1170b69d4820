"""What a metric means, in words: "jobs that AIM7 completes per minute". Pure.

Readers of reports asked "what exactly is app_overhead?". To add an entry, put it before any broader one that would also
match, and say what the tool measures, in a phrase that fits after "it is".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """`pattern` is searched for in the name without its suite, `suite` matches the whole suite; both ignore case."""

    suite: str
    pattern: str
    description: str


ENTRIES: tuple[GlossaryEntry, ...] = (
    GlossaryEntry(r"fs_?mark", r"app_overhead", "microseconds that fs_mark spends outside of the file system's calls"),
    GlossaryEntry(r"fs_?mark", r"files_per_sec", "files that fs_mark creates, writes, syncs and closes per second"),
    GlossaryEntry(r"(?:re)?aim\d?", r"jobs[-_]per[-_]min", "mixed jobs that AIM's load completes per minute"),
    GlossaryEntry(r"will-it-scale", r"per_process_ops", "iterations of one small system call loop, per process"),
    GlossaryEntry(r"will-it-scale", r"per_thread_ops", "iterations of one small system call loop, per thread"),
    GlossaryEntry(r"will-it-scale", r"scalability", "how iterations per task hold up as tasks are added; 1 is perfect"),
    GlossaryEntry(r"will-it-scale", r"workload", "iterations of the system call loop, all tasks together"),
    GlossaryEntry(r"vm-scalability", r"^throughput", "memory that all tasks touch per second, in kilobytes"),
    GlossaryEntry(r"vm-scalability", r"^median", "the median memory that one task touches per second, in kilobytes"),
    GlossaryEntry(r"stress-ng", r"ops_per_sec", "iterations of that stressor per second of real time (bogo ops/s)"),
    GlossaryEntry(r"stress-ng", r"ops$", "iterations of that stressor in the whole run (bogo ops)"),
    GlossaryEntry(r"stress-ng", r"calls_per_sec", "system calls of that kind per second"),
    GlossaryEntry(r"fio.*", r"iops", "reads or writes that fio completes per second"),
    GlossaryEntry(r"fio.*", r"bw", "bandwidth that fio achieves"),
    GlossaryEntry(r"fio.*", r"[cs]lat", "time from fio's request to its completion"),
    GlossaryEntry(r"filebench", r"operations/s", "file operations of the workload per second"),
    GlossaryEntry(r"netperf", r"throughput", "data or transactions per second, summed over netperf's connections"),
    GlossaryEntry(r"iperf\d?", r".", "data per second, as iperf measures it"),
    GlossaryEntry(r"sockperf", r"latency", "half of a message's round-trip time"),
    GlossaryEntry(r"hackbench", r"throughput", "messages per second through pipes or sockets, between groups of tasks"),
    GlossaryEntry(r"(?:perf-bench|perf-sched)\S*", r"ops", "iterations of that part of perf bench per second"),
    GlossaryEntry(r"unixbench", r"score", "UnixBench's index, relative to a machine of 1995"),
    GlossaryEntry(r"unixbench", r"throughput", "loops per second, as that part of UnixBench counts them"),
    GlossaryEntry(r"lmbench\d?", r"latency", "time of one such call, as lmbench measures it"),
    GlossaryEntry(r"lmbench\d?", r"bandwidth", "data per second, as lmbench measures it"),
    GlossaryEntry(r"iozone", r"k?bps", "data per second that iozone reads or writes"),
    GlossaryEntry(r"pft", r"faults_per_sec", "page faults per second"),
    GlossaryEntry(r"(?:pigz|pbzip2|pxz)", r"throughput", "data compressed per second"),
    GlossaryEntry(r"swapin", r"throughput", "data read back from swap per second"),
    GlossaryEntry(r"kbuild", r"time", "time to build a kernel"),
    GlossaryEntry(r"schbench", r"lat|percentile|\d(?:th|st|nd|rd)", "time from waking a task until it runs"),
    GlossaryEntry(r"(?:dbench|tbench)\d?", r"throughput", "data per second through the replayed file server load"),
    GlossaryEntry(r"nepim|tcp-?stream|udp-?stream", r".", "data per second over the network"),
    GlossaryEntry(r"ebizzy", r"throughput", "records per second looked up in fresh memory"),
    GlossaryEntry(r"boot-time", r".", "time to boot the machine"),
    GlossaryEntry(r".*", r"perf-profile", "share of the sampled CPU time that is spent in this function"),
    GlossaryEntry(
        r".*", r"(?:^|[._-])p\d{2,3}(?:[._-]|$)", "latency percentile: all but the slowest few per cent are below it"
    ),
    GlossaryEntry(r".*", r"^time\.elapsed|elapsed[._]?time", "real time that the test took"),
    GlossaryEntry(r".*", r"latenc|(?:^|[._-])lat(?:[._-]|$)", "latency of one operation"),
    GlossaryEntry(r".*", r"(?:^|[._-])per[._-]sec(?:ond)?|/s(?:ec)?$", "work completed per second"),
    GlossaryEntry(r".*", r"(?:^|[._-])per[._-]min(?:ute)?", "work completed per minute"),
    GlossaryEntry(
        r".*", r"through?put|bandwidth|(?:^|[._-])bw(?:[._-]|$)", "amount of data or work moved per unit of time"
    ),
    GlossaryEntry(r".*", r"iops|(?:^|[._-])ops(?:[._-]|$)", "operations completed per unit of time"),
    GlossaryEntry(r".*", r"score", "the test's own score"),
    GlossaryEntry(
        r".*", r"(?:^|[._-])(?:time|duration|seconds|[num]s|[num]sec)$", "a duration, as reported by the test"
    ),
)
_BETTER = {"higher": "higher is better", "lower": "lower is better"}


@lru_cache(maxsize=20_000)
def meaning(metric: str, suite: str = "") -> str:
    """Return what the number is, without its unit and direction; "" if no entry matches.

    >>> meaning("aim7.jobs-per-min")
    "mixed jobs that AIM's load completes per minute"
    """
    own = metric.partition(".")[0]
    suite = suite or own
    name = metric.removeprefix(f"{suite}.")[:300]
    if own != "perf-profile":
        name = name.removeprefix(f"{own}.")
    for entry in ENTRIES:
        fits = any(re.fullmatch(entry.suite, each[:100], re.I) for each in (suite, own))
        if fits and re.search(entry.pattern, name or metric[:300], re.I):
            return entry.description
    return ""


def in_words(metric: str, unit: str, direction: str, suite: str = "") -> str:
    """Return a metric explained: "files that fs_mark … per second; in files/s, higher is better"."""
    better = _BETTER.get(direction, "direction unknown")
    description = meaning(metric, suite) or f"reported by {suite or 'the test'}, no description available"
    return f"{description}; " + (f"in {unit}, {better}" if unit else better)
