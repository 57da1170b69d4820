"""What is known of a metric by its name: whether lower is better, whether its suite is run for it, its unit, and what
it means. Pure.

Four tables, read from the top; the first line that matches decides. The table of directions counts only where
neither a lab nor an operator has set one. A direction is what the benchmark itself calls better, and its line says
how we know. Monitors have none: they watch the machine, and only the benchmark's own numbers grade a change.

The glossary exists because readers of reports asked "what exactly is app_overhead?": it explains a metric in words,
as in "jobs that AIM7 completes per minute".
"""

import re
from dataclasses import dataclass
from functools import lru_cache

# --- Direction ---


# To add a line, put it before any broader one that would also match, say in `why` how you know, and add
# a metric that it matches to the test table.
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
    # How much the runs differ, whatever it is that they measure.
    DirectionRule("lower", r"(?:^|[._-])(?:std-?dev|std_dev|stdev|std-?err|variance|variation|deviation|cv|rsd)%?(?:[._-]|$)"
         r"|[._-](?:std|sd|sem|mad|iqr|spread)%?$", "a spread: steadier is better"),
    # By suite, where the name alone is misleading or says nothing.
    DirectionRule("higher", r"latency_(?:under_|below_|within_)?[\d.]+(?:us|ms)%$", "the share of requests that were answered within that time", r"(?!fio).*"),
    DirectionRule("higher", r"^\d+\.(?:threads|processes)$", "will-it-scale's operations by the number of tasks", "will-it-scale"),
    DirectionRule("higher", r"faults", "pft counts the page faults that it manages to take", "pft"),
    DirectionRule("higher", r"^median", "vm-scalability reports the median throughput of its threads", "vm-scalability"),
    DirectionRule("higher", r"^median$", "SPECjbb's median throughput", r"specjbb\d*"),
    DirectionRule("higher", r"^scalability$", "how operations per task hold up; etc/index-perf-all.yaml of lkp-tests", "will-it-scale"),
    DirectionRule("higher", r"score", "UnixBench's index, also of its test of overhead", "unixbench"),
    DirectionRule("higher", r"\.speed$", "requests per second", "mutilate"),
    DirectionRule("higher", r"[kmg]bps\.avg$", "NetPIPE's bandwidth; its other averages are times", "netpipe"),
    DirectionRule("higher", r"^workload$", "will-it-scale counts the operations of all tasks in a fixed time", "will-it-scale"),
    DirectionRule("lower", r".", "fwq and ftq measure the time that the kernel takes from fixed work", "fwq|ftq"),
    DirectionRule("lower", r".", "these measure how late a task wakes up", "cyclictest|rtla.*|timerlat|osnoise|hwlatdetect"),
    DirectionRule("lower", r".", "how long the boot took, in seconds", "boot-time"),
    # What failed or was lost, whatever it is counted in.
    DirectionRule("lower", r"(?:^|[._-])(?:failed|failures?|reconnects?|aborted|aborts|rejected|dropped|lost|loss|retries)"
         r"(?:[._-](?:ops|operations|requests|packets|transactions|events|connections|percent|pct))?(?:[._-]per[._-]sec(?:ond)?|/s(?:ec)?)?%?$",
         "work that failed or was lost"),
    DirectionRule("lower", r"(?:failed|aborted|rejected|dropped|lost)[._-](?:transaction|request)s?[._-]rate", "work that failed or was lost"),
    DirectionRule("lower", r"(?:^|[._-])(?:(?:abort|drop|error|eviction|failure|loss|miss|reject|timeout)(?:[._-]?rat(?:e|io))?%?"
         r"|errors%?|misses|timed[._-]out|retrans(?:mits?|missions?)?|over-?runs|xruns)$",
         "work that failed or was lost"),
    # Work per time, whatever the work is: faults, misses and stalls are what such a stressor makes.
    DirectionRule("higher", r"(?:^|[._-])ops(?:[._-]per[._-]sec)?$", "operations, as stress-ng.fault.ops_per_sec"),
    DirectionRule("higher", r"through?put", "throughput, as vm-scalability.throughput_fault"),
    DirectionRule("higher", r"page_faults_per_sec$", "stress-ng counts the faults that it manages to take", "stress-ng"),
    DirectionRule("higher", r"jops$", "SPECjbb's operations", r"specjbb\d*"),
    DirectionRule("higher", r"(?:flops|gbs)$", "HPCC's rates", "hpcc"),
    DirectionRule("higher", r"^(?:transactions|op_rate|.*cryption)$", "work done in a fixed time", "postmark|cassandra|tcrypt"),
    DirectionRule("higher", r"(?:^|[.])(?![^.]*(?:latenc|elapsed|delay|duration|time|error|miss|fault|jitter|drop|average_sec|avg_s"
         r"|joule|watt|wall|cpu|boot|seconds|p\d))[^.]*_(?:s|sec|second)$|_teps$",
         "what is done per second, as the suite writes units", "pts.*|phoronix.*"),
    DirectionRule("lower", r"^rtt$|average$|\.avg$|average_[num]sec", "times, by the suite", "thrulay|rt-app|netpipe|pts.*"),
    # Smaller is better: time, cost, waste.
    DirectionRule("lower", r"latenc(?:y|ies)|(?:^|[._-])[cs]?lat(?:[._-]|$)", "latency is time spent waiting"),
    DirectionRule("lower", r"overhead", "overhead is time that is not work; fsmark.app_overhead in 2019-2022 reports"),
    DirectionRule("lower", r"percentile|(?:^|[._-])p\d{1,3}(?:[._-]|$)|\d(?:th|st|nd|rd)(?:[._-]|$)",
         "percentiles are reported for latencies: fio, schbench, wrk, sockperf"),
    DirectionRule("lower", r"elapsed|(?:wall|run|exec(?:ution)?|completion|connection|response|boot|real)[._-]?time", "how long it took"),
    DirectionRule("lower", r"(?:[num]?s|[num]?sec|seconds|time)[._-]?(?:per[._-]|/)(?:op|call|loop|iter|req)"
         r"|(?:^|[._-])(?:[num]?s|[num]?sec|seconds|time)[._-](?:per[._-])(?:msg|message|event)"
         r"|(?:nano|micro|milli)[_-]?seconds?_operation$", "time per operation"),
    DirectionRule("lower", r"(?:nano|micro|milli)sec(?:ond)?s?[ ._-]+(?:per|to|for)[ ._-]",
         "time per operation in words, as stress-ng's nanosec per fork"),
    DirectionRule("lower", r"jitter|stall|(?:^|[._-])pause(?:s|[._-]?(?:time|[num]?s))?$|longest_transaction|(?:^|[._-])(?:miss|fault|error|drop|retransmit|timeout)(?:s|es|ed)?(?:[._/-]|$)",
         "waiting and waste"),
    DirectionRule("higher", r"(?:^|[._-])per[._-](?:watt|joule|wh)|/(?:watt|joule|wh|j)$", "work for the same energy"),
    DirectionRule("higher", r"(?:^|[._-])(?:ipc|bytes(?:[._-]per[._-]|/)cycle)$", "work for the same cycles"),
    DirectionRule("lower", r"(?:^|[._-])(?:cpi|cycles(?:[._-]per[._-]|/)(?:block|byte|call|element|iteration|op|operation|packet|page|request|transaction))$", "cycles for the same work"),
    DirectionRule("lower", r"(?:^|[._-])(?:(?:max|peak)[._-]?rss|rss(?=[._-]))(?:[._-](?:[kmg]i?b|bytes))?$", "memory for the same work"),
    DirectionRule("lower", r"joule|energy|watt", "energy for the same work"),
    # Larger is better: work per time.
    DirectionRule("higher", r"(?:^|[._-])per[._-](?:sec(?:ond)?|min(?:ute)?|hour|process_ops|thread_ops)",
         "work per time: ops_per_sec, files_per_sec, jobs-per-min, will-it-scale.per_process_ops"),
    DirectionRule("higher", r"bandwidth|goodput|(?:^|[._-])bw(?:[._-]|$)", "bandwidth"),
    DirectionRule("higher", r"iops|(?:^|[._-])(?:ops|[tqrfp]ps|mips|[kmg]?flops)(?:[._-]|$)", "work per time, abbreviated"),
    DirectionRule("higher", r"[kmgt]i?b(?:ps|its?/s|ytes/s)|[kmgt]i?b[._-](?:per[._-])?s(?:ec)?|(?:^|[._-])bps(?:[._-]|$)|/s(?:ec|econd)?$",
         "an amount per second: MB/s, GB_sec, iperf's bps"),
    DirectionRule("higher", r"(?:^|[._-])(?:score|speed_?up|(?:hit|success)_?rat(?:e|io)|availability|(?:transaction|request)s?_rate)%?(?:[._-]|$)",
         "scores, rates of hits and successes, siege's transaction rate"),
    # Last, names that end in a unit of time.
    DirectionRule("lower", r"(?:^|[._-])(?:time(?:[._-]s(?:ec)?)?|duration|delay|(?:nano|micro|milli)?-?seconds|[num]s|[num]sec)$",
         "a time, by its unit"),
)  # fmt: skip


@lru_cache(maxsize=20_000)
def rule_of(metric: str, suite: str = "") -> DirectionRule | None:
    """Return the line that decides on "suite.rest"; by default, the suite is the part before the first dot."""
    suite = suite if suite and metric.startswith(f"{suite}.") else metric.partition(".")[0]
    name = metric.removeprefix(f"{suite}.")[:300]
    for rule in RULES:
        fits = rule.suite == ".*" or re.fullmatch(rule.suite, suite, re.IGNORECASE)
        if fits and re.search(rule.pattern, name, re.IGNORECASE):
            return rule
    return None


def direction_of(metric: str, suite: str = "") -> str:
    """Return "higher", "lower" or "unknown".

    >>> direction_of("fsmark.files_per_sec"), direction_of("demo.p95_ms"), direction_of("demo.widgets")
    ('higher', 'lower', 'unknown')
    """
    rule = rule_of(metric, suite)
    return rule.direction if rule else "unknown"


# --- Key metrics ---

# The metrics that a suite is run for, as lkp-tests lists them in etc/index-perf-all.yaml and index-latency-all.yaml:
# patterns for the suite and for the rest of the name. The suites that nobody listed have a usual name for it.
KEY_METRICS: tuple[tuple[str, str], ...] = (
    (r"will-it-scale", r"per_(?:process|thread)_ops"),
    (r"vm-scalability", r"throughput|median"),
    (r"aim9", r".*ops_per_sec"),
    (r"apachebench", r"requests_per_second"),
    (r"blogbench", r"(?:read|write)_score"),
    (r"cassandra", r"op_rate"),
    (r"coremark", r"iterations_per_sec"),
    (r"fxmark", r".*works/sec"),
    (r"glbenchmark", r"fps"),
    (r"hpcc", r".*(?:flops|gbs)"),
    (r"kernbench", r"elapsed_time"),
    (r"linpack", r"gflops"),
    (r"linkbench|ycsb", r".*(?:requests|ops)/s"),
    (r"nuttcp|nepim", r".*(?:mbps|kbps_in|kbps_out)"),
    (r"netpipe", r".*\.avg"),
    (r"openssl-speed", r".*(?:_per_sec|_kbps)"),
    (r"pgbench", r"tps|latency_ms"),
    (r"pmbench", r"throughput\..*"),
    (r"postmark", r"transactions"),
    (r"qperf", r".*[._]bw"),
    (r"rt-app", r".*\.average"),
    (r"sockperf", r"throughput\..*|under-load\.avg-lat"),
    (r"specjbb\d*", r"(?:critical|max)-jops|median"),
    (r"stream", r"(?:copy|scale|add|triad)_bandwidth_mbps"),
    (r"thrulay", r"throughput|rtt"),
    (r"uperf", r".*bps"),
    (r"fs_?mark", r"files_per_sec|app_overhead"),
    (r"(?:re)?aim\d?", r"jobs[-_]per[-_]min"),
    (r"unixbench", r"(?:throughput|score)"),
    (r"hackbench|hyperfine|criterion|pytest-benchmark", r"time|throughput"),
    (r"google-benchmark", r"real_time"),
    (r"command", r"task-clock|duration_time"),
    (r"bencher", r"latency|throughput"),
    (r"dbench\d?|tbench\d?|ebizzy|pigz|pbzip2|pxz|swapin|vm-scan", r"throughput(?:[-_]mb/s(?:ec)?)?|ops_per_sec"),
    (r"netperf", r"throughput(?:_total)?_(?:mbps|tps)"),
    (r"fio.*", r"(?:read|write)_(?:bw_mbps|iops)"),
    (r"filebench", r"sum_operations/s"),
    (r"stress-ng", r"[\w-]+\.ops_per_sec"),
    (r"lmbench\d?", r".*(?:bandwidth|latency).*"),
    (r"pft", r"faults_per_sec_per_cpu"),
    (r"iozone", r"average_kbps"),
    (r"kbuild", r"\w+_per_iteration"),
    (r"schbench", r".*99(?:\.0)?th.*|(?:wakeup|request)_latency_max(?:_us)?"),
    (r"cyclictest", r"(?:latency_)?max(?:_us)?"),
    (r"redis", r"[gs]et_(?:total|avg)_throughput_rps"),
    (r"memtier", r"(?:totals|sets|gets)_ops/s"),
    (r"iperf\d?", r"(?:tcp|udp)\..*bps"),
    (
        r"sysbench.*|oltp.*",
        r"(?:events|transactions|operations)_per_sec|\w*(?:events|transactions|operations|ops)/s"
        r"|throughput_mb/s|transferred_mib_per_sec",
    ),
    (r"phoronix-test-suite|pts.*", r".*\.[^.]+"),
    (r"(?:perf-bench|perf-sched)\S*", r"ops.*|[GM]B_(?:per_)?sec(?:_thread|_total)?|(?:requeued|wokeup)_time_ms"),
    (r"adrestia", r"wakeup_cost_\w+_us"),
    (r"autonuma-benchmark", r".*\.seconds"),
    (r"dd", r".*_time_ms"),
    (r"exit-free", r"duration"),
    (r"ftrace-onoff", r"ops"),
    (r"kselftests", r".*\.(?:packets_per_sec|usec_per_loop)|mqueue\.nsec_per_msg"),
    (r"mcperf", r".*_rate_.*/s"),
    (r"mutilate", r".*\.speed"),
    (r"simoop", r"work_rate_avg_per_sec"),
    (r"tcrypt", r".*\.(?:en|de)cryption"),
    (r"tlbflush", r"mem_acc_\w+|munmap_\w+"),
    (r"boot-time", r"boot"),
    (r".*", r"(?:ops_per_sec|throughput|transactions_per_sec|iops|score)"),
)


def has_own_keys(suite: str) -> bool:
    """Whether it is known what a suite is run for; of others, only what such metrics are usually called."""
    return any(re.fullmatch(suites, suite[:100], re.IGNORECASE) for suites, _ in KEY_METRICS[:-1])


@lru_cache(maxsize=20_000)
def is_monitor(metric: str) -> bool:
    """Whether a metric is by one of the monitors, which watch the machine while the benchmark runs.

    >>> is_monitor("perf-profile.calltrace.cycles-pp.do_sys_open"), is_monitor("vm-scan.ops_per_sec")
    (True, False)
    """
    return re.fullmatch(_MONITORS, metric.partition(".")[0][:100], re.IGNORECASE) is not None


@lru_cache(maxsize=20_000)
def is_key(metric: str, suite: str = "") -> bool:
    """Whether a suite is run for this metric (its KPI).

    >>> is_key("will-it-scale.per_process_ops"), is_key("will-it-scale.scalability"), is_key("demo.ops_per_sec")
    (True, False, True)
    """
    suite = suite if suite and metric.startswith(f"{suite}.") else metric.partition(".")[0]
    name = metric.removeprefix(f"{suite}.")[:300]
    for suites, names in KEY_METRICS:
        if re.fullmatch(suites, suite[:100], re.IGNORECASE):
            return bool(re.fullmatch(names, name, re.IGNORECASE))
    return False


# --- Unit ---

# The first match decides; a unit may use a group of its pattern.
_UNITS: tuple[tuple[str, str], ...] = (
    (r"%$", "%"),
    (r"([KMGT]i?B)(?:ps|/s(?:ec)?|[._-]per[._-]sec)$", r"\1/s"),
    (r"([KMGT])(?:bps|bit/s|bits/s)$", r"\1bit/s"),
    (r"([KMGT]i?B)[._-]sec$", r"\1/s"),
    (r"_mb/s$", "MB/s"),
    (r"([A-Za-z]+)[_-]per[_-]sec(?:ond)?$", r"\1/s"),
    (r"([A-Za-z]+)[_-]per[_-]min(?:ute)?$", r"\1/min"),
    (r"([A-Za-z]+)/s(?:ec)?$", r"\1/s"),
    (r"per_(?:process|thread)_ops$", "ops/s"),
    (r"(?:^|[._-])(?:\w+_)?(iops|IOPS)$", "IOPS"),
    (r"(?:^|[._-])(?:tps|rps|qps)$", "1/s"),
    (r"(?:^|[._-])Throughput_Mbps$", "Mbit/s"),
    (r"(?:^|[._-])(ns|us|ms)$", r"\1"),
    (r"(?:^|[._-])([num])sec(?:onds)?$", r"\1s"),
    (r"(?:^|[._-])(?:sec|seconds|elapsed_time)$", "s"),
    (r"(?:^|[._-])(?:kb|KB|kB)$", "kB"),
    (r"(?:^|[._-])bytes$", "B"),
)


@lru_cache(maxsize=20_000)
def unit_of(metric: str) -> str:
    """Return the unit in a metric's name; "" if there is none.

    >>> unit_of("aim7.jobs-per-min")
    'jobs/min'
    """
    name = metric[-300:]
    for pattern, unit in _UNITS:
        if match := re.search(pattern, name):
            return match.expand(unit)
    return ""


_SPELLED = {
    "s": r"s(?:ec(?:ond)?s?)?",
    "ms": r"m(?:illi)?s(?:ec(?:ond)?s?)?",
    "us": r"(?:u|µ|μ|micro)s(?:ec(?:ond)?s?)?",
    "ns": r"n(?:ano)?s(?:ec(?:ond)?s?)?",
    "min": r"min(?:ute)?s?",
    "h": r"h(?:ours?)?",
    "J": r"joules?",
    "%": r"per ?cent",
    "1": r"ops?|operations?|io|requests?|req|r|queries|q|transactions?|trans|t|events?",
}
_SIZE = re.compile(r"(?P<prefix>[kKMGT]?i?)(?:(?P<bytes>B|[Bb]ytes?)|b|[Bb]its?)")


def same_unit(one: str, other: str) -> bool:
    """Whether two units are one, perhaps spelled otherwise; no unit, "" or 1, may be any. Bits and bytes differ by case.

    >>> same_unit("msec", "ms"), same_unit("IOPS", "1/s"), same_unit("MB/sec", "MB/s"), same_unit("", "us")
    (True, True, True, True)
    >>> same_unit("us", "ms"), same_unit("MB/s", "Mb/s"), same_unit("k/s", "1/s"), same_unit("MB/s", "MiB/s")
    (False, False, False, False)
    """
    return not {one, other}.isdisjoint(("", "1")) or _canonical_unit(one) == _canonical_unit(other)


def _canonical_unit(unit: str) -> str:
    """Return a unit as we write it: "Mbit/s" for "Mbps", "us/1" for "usec/op"."""
    return "/".join(map(_canonical_part, re.sub(r"(?<=.)ps\Z", "/s", unit.strip(), flags=re.I).split("/")))


def _canonical_part(part: str) -> str:
    if size := _SIZE.fullmatch(part):
        return f"{size['prefix'].replace('k', 'K')}{'B' if size['bytes'] else 'bit'}"
    return next((name for name, spelled in _SPELLED.items() if re.fullmatch(spelled, part, re.I)), part)


# --- Meaning ---


# To add an entry, put it before any broader one that would also match, and say what the tool measures,
# in a phrase that fits after "it is".
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
    GlossaryEntry(r"hackbench", r"^time", "time until all groups of tasks have exchanged their messages"),
    GlossaryEntry(r"hyperfine", r"^time", "real time of the command, from start to exit"),
    GlossaryEntry(r"hyperfine", r"^(?:user|system)_time", "CPU time of the command, the mean of its runs"),
    GlossaryEntry(r"(?:google|pytest)-benchmark|criterion", r"time", "time of one iteration of the benchmark"),
    GlossaryEntry(r"command", r"task-clock", "CPU time of the command, as perf stat counts it"),
    GlossaryEntry(r"sysbench", r"events_per_sec", "events of the test that sysbench completes per second"),
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
    GlossaryEntry(r"cyclictest", r".", "time from when a thread's timer should wake it until it runs"),
    GlossaryEntry(r"(?:dbench|tbench)\d?", r"throughput", "data per second through the replayed file server load"),
    GlossaryEntry(r"nepim|tcp-?stream|udp-?stream", r".", "data per second over the network"),
    GlossaryEntry(r"ebizzy", r"throughput", "records per second looked up in fresh memory"),
    GlossaryEntry(r"boot-time", r".", "time to boot the machine"),
    GlossaryEntry(r".*", r"perf-profile", "share of the sampled CPU time that is spent in this function"),
    GlossaryEntry(r".*", r"(?:^|[._-])p\d{2,3}(?:[._-]|$)", "latency percentile: all but the slowest few per cent are below it"),
    GlossaryEntry(r".*", r"^time\.elapsed|elapsed[._]?time", "real time that the test took"),
    GlossaryEntry(r".*", r"latenc|(?:^|[._-])lat(?:[._-]|$)", "latency of one operation"),
    GlossaryEntry(r".*", r"(?:^|[._-])per[._-]sec(?:ond)?|/s(?:ec)?$", "work completed per second"),
    GlossaryEntry(r".*", r"(?:^|[._-])per[._-]min(?:ute)?", "work completed per minute"),
    GlossaryEntry(r".*", r"through?put|bandwidth|(?:^|[._-])bw(?:[._-]|$)", "amount of data or work moved per unit of time"),
    GlossaryEntry(r".*", r"iops|(?:^|[._-])ops(?:[._-]|$)", "operations completed per unit of time"),
    GlossaryEntry(r".*", r"score", "the test's own score"),
    GlossaryEntry(r".*", r"(?:^|[._-])(?:time|duration|seconds|[num]s|[num]sec)$", "a duration, as reported by the test"),
)  # fmt: skip
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
        fits = any(re.fullmatch(entry.suite, candidate[:100], re.I) for candidate in (suite, own))
        if fits and re.search(entry.pattern, name or metric[:300], re.I):
            return entry.description
    return ""


def in_words(metric: str, unit: str, direction: str, suite: str = "") -> str:
    """Return a metric explained: "files that fs_mark … per second; in files/s, higher is better"."""
    better = _BETTER.get(direction, "direction unknown")
    description = meaning(metric, suite)
    if description:
        return f"{description}; " + (f"in {unit}, {better}" if unit else better)
    name = metric.removeprefix(f"{suite}.")[:100]
    return f"{name}, as {suite or 'the test'} reports it ({f'in {unit}' if unit else 'unit unknown'}); {better}"
