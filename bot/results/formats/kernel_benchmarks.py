"""Benchmarks of the kernel itself: what scheduler, system calls and timers cost, and counters of the hardware. Pure."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Format, Metric, Reading, Samples, Test, words_of
from bot.results.formats.lkp import read_yaml
from bot.results.values import RejectedInput

# --- perf stat ---

_STARTED = "# started on "
_NOT_COUNTED = ("<not supported>", "<not counted>")
_COST = re.compile(
    r"(?:task|cpu)-clock|duration_time|(?:user|system)_time|(?:cpu-)?cycles|(?:ref-cycles)|instructions|page-faults"
)


def is_perf_stat(document: Document) -> bool:
    lines = [line for line in document.text[:20_000].splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return document.text.startswith(_STARTED)
    if lines[0].startswith("{"):
        return '"counter-value"' in lines[0]
    cells = lines[0].split(",")
    return document.text.startswith(_STARTED) or len(cells) >= 7


def read_perf_stat(document: Document) -> Reading:
    """perf stat: the JSON of `-j` and the CSV of `-x,`, one file a run of a fixed command.

    With `-r N` perf writes the means of N runs but not N, so a file is one run all the same: use one file a run. Events
    that the machine can't count are left out. For fixed work, less time, fewer cycles and instructions are better.
    """
    metrics: dict[str, Metric] = {}
    counted = False
    for place, event, value, unit in _perf_stat_rows(document):
        event = event.removesuffix(":u").removesuffix(":k") if event.count(":") == 1 else event
        counted = True
        if value in _NOT_COUNTED:
            continue
        number = document.number(value, place, lowest=0)
        if event in metrics:
            document.fault(place, f"the event {event[:60]} stands twice: expected one file a run")
        if number is not None:
            metrics[event] = Metric(f"command.{event}", (number,), unit, LOWER if _COST.fullmatch(event) else "")
    if counted and not metrics and not document.faults:
        document.fault("", "expected counts, found only events that this machine can't count: try -e task-clock")
    return Reading((Test("command", {}, tuple(metrics.values())),), tool="perf stat")


def _perf_stat_rows(document: Document) -> Iterator[tuple[str, str, str, str]]:
    """Yield place, event, value and unit of each count."""
    for number, line in document.lines:
        place = f"line {number}"
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("{"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                document.fault(place, f"not JSON, or cut short: {words_of(error)}")
                continue
            if "interval" in row:
                document.fault(place, "expected the counts of a whole run, found those of an interval (perf stat -I)")
            elif "event" not in row and "counter-value" not in row and "metric-value" in row:
                continue  # a derived metric on a line of its own
            elif not isinstance(row.get("event"), str):
                document.fault(place, "expected the name of an event, found none")
            else:
                unit = row.get("unit")
                yield place, row["event"], str(row.get("counter-value", "")), unit if isinstance(unit, str) else ""
            continue
        yield from _perf_stat_row(document, line, place)


def _perf_stat_row(document: Document, line: str, place: str) -> Iterator[tuple[str, str, str, str]]:
    try:
        cells = next(csv.reader(io.StringIO(line)), [])
    except csv.Error as error:
        document.fault(place, f"expected CSV: {error}")
        return
    if len(cells) < 3:
        document.fault(place, f"expected value,unit,event,…; found {line[:60]!r}: a run cut short?")
    elif re.fullmatch(r"\s*\d+\.\d{9}", cells[0]) and len(cells) > 7:
        document.fault(place, "expected the counts of a whole run, found those of an interval (perf stat -I)")
    elif re.fullmatch(r"\d+", cells[1].strip()):
        document.fault(place, f"expected a unit, found {cells[1][:20]!r}: a decimal comma? Run perf with LC_ALL=C")
    elif cells[2]:
        yield place, cells[2], cells[0].strip(), cells[1]
    elif cells[0].strip():
        document.fault(place, "expected the name of an event, found none")


# --- perf bench ---

_PERF_BENCH_RUN = re.compile(r"# Running '?([\w-]+/[\w-]+)'? benchmark")
_WORD = r"(\S+)"
# What a line says: pattern, metric, unit, direction, and how many of what it counts in make one unit. `perf bench mem`
# writes a rate in the largest unit that keeps it above 1, KB with a stray "d" (tools/perf/bench/mem-functions.c).
_PERF_BENCH_LINES = (
    (re.compile(rf"^\s*Total time: {_WORD} \[sec\]"), "total_time", "s", LOWER, 1),
    (re.compile(rf"^\s*{_WORD} usecs/op\b"), "usecs_per_op", "us", LOWER, 1),
    (re.compile(rf"^\s*{_WORD} ops/sec\b"), "ops_per_sec", "ops/s", HIGHER, 1),
    (re.compile(rf"^\s*{_WORD} GB/sec\b"), "GB_per_sec", "GB/s", HIGHER, 1),
    (re.compile(rf"^\s*{_WORD} MB/sec\b"), "GB_per_sec", "GB/s", HIGHER, 1 << 10),
    (re.compile(r"^\s*([^\sd]+)d? KB/sec\b"), "GB_per_sec", "GB/s", HIGHER, 1 << 20),
    (re.compile(rf"^\s*{_WORD} bytes/sec\b"), "GB_per_sec", "GB/s", HIGHER, 1 << 30),
    (re.compile(rf"^Averaged {_WORD} operations/sec"), "ops_per_sec", "ops/s", HIGHER, 1),
    (re.compile(rf"^(?:Requeued|Wokeup|Woke up|Avg per-thread latency) .* in {_WORD} ms\b"), "time_ms", "ms", LOWER, 1),
)
# The same where the line names what it counts: epoll/ctl, the benchmarks of perf itself, mem/find_bit
_PERF_BENCH_NAMED = (
    (re.compile(r"^Averaged (?P<value>\S+) (?P<name>[A-Z]+) operations "), "ops", "ops", HIGHER),
    (re.compile(r"^\s*Average (?P<name>[\w -]+?) took:\s+(?P<value>\S+) usec\b"), "us", "us", LOWER),
    (re.compile(r"^\s*Average (?P<name>[\w -]+?) took:\s+(?P<value>\S+) m(?:sec|s)\b"), "ms", "ms", LOWER),
    (
        re.compile(r"^ ?(?P<name>[\w-]+),\s+(?P<value>\S+), GB/sec,\s+total-speed\b"),
        "GB_per_sec",
        "GB/s",
        HIGHER,
    ),  # numa
)
# How much is done, which perf says before the numbers
_PERF_BENCH_LOADS = (
    re.compile(r"^# function '(?P<function>[^']{1,60})'"),
    re.compile(r"^# (?P<groups>\d+) groups == \d+ (?P<mode>\w+) run"),
    re.compile(r"^# Executed (?P<operations>[\d,]+) "),
    re.compile(r"^# Copying (?P<size>\S+) bytes"),
    re.compile(r"^Run summary \[PID \d+\]: (?:blocking on |Requeuing )?(?P<threads>\d+) threads"),
    re.compile(r"^Number of synthesis threads: (?P<threads>\d+)"),
    re.compile(r"^\d+ operations (?P<set>\d+) bits set of (?P<bits>\d+) bits"),
)


def is_perf_bench(document: Document) -> bool:
    return bool(_PERF_BENCH_RUN.search(document.text[:5000]))


def read_perf_bench(document: Document) -> Reading:
    """perf bench: its default text, one benchmark or several after each other.

    Each `# Running 'sched/pipe' benchmark:` begins a run; equal benchmarks in one file are samples of each other.
    """
    samples = Samples()
    name, started, has_number = "", 0, True
    params: dict[str, str] = {}
    for number, line in document.lines:
        if match := _PERF_BENCH_RUN.search(line):
            if not has_number:
                document.fault(
                    f"line {started}",
                    f"{name}: expected its numbers, found another run: cut short, or a benchmark that isn't known here",
                )
            name, params, started, has_number = match[1], {}, number, False
        elif load := next(filter(None, (pattern.match(line.strip()) for pattern in _PERF_BENCH_LOADS)), None):
            params |= {key: value.replace(",", "") for key, value in load.groupdict().items()}
        elif name and (row := _perf_bench_number(document, line, f"line {number}")):
            has_number = True
            metric, value, unit, direction = row
            suite = f"perf-bench-{name.replace('/', '-')}"
            samples.add(suite, params, f"{suite}.{metric}", value, unit, direction)
    if not has_number:
        document.fault(
            f"line {started}",
            f"{name}: expected its numbers, found none: a run cut short, or a benchmark that isn't known here",
        )
    return Reading(tuple(samples.tests()), tool="perf bench")


def _perf_bench_number(document: Document, line: str, place: str) -> tuple[str, float | None, str, str] | None:
    """Return metric, value, unit and direction of a line with a number."""
    for pattern, metric, unit, direction, per_unit in _PERF_BENCH_LINES:
        if match := pattern.match(line):
            value = document.number(match[1], place, above=0)
            return metric, None if value is None else value / per_unit, unit, direction
    for pattern, metric, unit, direction in _PERF_BENCH_NAMED:
        if match := pattern.match(line):
            name = "_".join(match["name"].lower().split())
            return f"{name}_{metric}", document.number(match["value"], place, above=0), unit, direction
    return None


# --- sysbench ---

_BEGIN = re.compile(r"^sysbench (\d[\w.-]*)")
_LOADS = (
    re.compile(r"^Number of threads: (?P<threads>\d+)"),
    re.compile(r"^Prime numbers limit: (?P<prime>\d+)"),
    re.compile(r"^\s+block size: (?P<block>\S+)"),
    re.compile(r"^\s+operation: (?P<operation>\w+)"),
    re.compile(r"^\s+scope: (?P<scope>\w+)"),
    re.compile(r"^Block size (?P<block>\S+)"),
    re.compile(r"^(?P<size>\S+) total file size"),
    re.compile(r"^Using (?P<mode>\w+) I/O mode"),
    re.compile(r"^Doing (?P<operation>[\w/ ()-]{1,60}?) test\b"),
)
_EVENTS = re.compile(r"^\s*total number of events:\s+(\d+)")
_AMOUNT = r"([^\s()]+)"
# Which test it is, by a line that only this one prints
_KINDS = (
    ("CPU speed:", "cpu"),
    ("memory speed test", "memory"),
    ("File operations:", "fileio"),
    ("SQL statistics:", "oltp"),
)
_SYSBENCH_LINES = (
    (re.compile(rf"^\s*events per second:\s+{_AMOUNT}"), "events_per_sec", "events/s", HIGHER),
    (re.compile(rf"^\s*events/s \(eps\):\s+{_AMOUNT}"), "events_per_sec", "events/s", HIGHER),
    (re.compile(rf"^\s*transactions:\s+\d+\s+\({_AMOUNT} per sec"), "transactions_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*queries:\s+\d+\s+\({_AMOUNT} per sec"), "queries_per_sec", "1/s", HIGHER),
    (re.compile(rf"^Total operations: \d+ \(\s*{_AMOUNT} per second"), "operations_per_sec", "1/s", HIGHER),
    (re.compile(rf"^[\d.]+ MiB transferred \({_AMOUNT} MiB/sec"), "transferred_MiB_per_sec", "MiB/s", HIGHER),
    (re.compile(rf"^\s*reads/s:\s+{_AMOUNT}"), "reads_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*writes/s:\s+{_AMOUNT}"), "writes_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*fsyncs/s:\s+{_AMOUNT}"), "fsyncs_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*read, MiB/s:\s+{_AMOUNT}"), "read_MiB_per_sec", "MiB/s", HIGHER),
    (re.compile(rf"^\s*written, MiB/s:\s+{_AMOUNT}"), "written_MiB_per_sec", "MiB/s", HIGHER),
    (re.compile(r"^\s*(?:total time|time elapsed):\s+(\S+?)s$"), "total_time", "s", LOWER),
    (re.compile(rf"^\s*avg:\s+{_AMOUNT}"), "latency_avg_ms", "ms", LOWER),
    (re.compile(rf"^\s*95th percentile:\s+{_AMOUNT}"), "latency_95th_ms", "ms", LOWER),
    (re.compile(rf"^\s*99th percentile:\s+{_AMOUNT}"), "latency_99th_ms", "ms", LOWER),
)  # fmt: skip


def is_sysbench(document: Document) -> bool:
    return any(_BEGIN.match(line) for line in document.text[:5000].splitlines())


def read_sysbench(document: Document) -> Reading:
    """sysbench 1.0 and 1.1: its text, one run or several after each other."""
    samples, versions = Samples(), set()
    for version, start, lines in _sysbench_runs(document):
        versions.add(version)
        params, is_whole = _sysbench_load(lines), False
        found: dict[tuple[str, str, str], float | None] = {}
        for number, line in lines:
            is_whole = is_whole or line.startswith("General statistics:") or "time elapsed:" in line
            for pattern, metric, unit, direction in _SYSBENCH_LINES:
                if match := pattern.match(line):
                    found[metric, unit, direction] = document.number(match[1], f"line {number}", lowest=0)
                    break
        if not is_whole:
            document.fault(f"line {start}", "a run cut short: expected its general statistics, found none")
        for (metric, unit, direction), value in found.items():
            samples.add("sysbench", params, f"sysbench.{metric}", value, unit, direction)
    if len(versions) > 1:
        document.fault("", f"expected one version of sysbench, found {', '.join(sorted(versions))}")
    return Reading(tuple(samples.tests()), tool=f"sysbench {min(versions, default='')}".strip())


def _sysbench_load(lines: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Return which test ran, and with what. The mutex test prints no more than others do; in it, each thread has one
    event.
    """
    params, events = {"test": "unknown"}, ""
    for _, line in lines:
        for pattern in _LOADS:
            if match := pattern.match(line):
                params |= match.groupdict()
        for mark, kind in _KINDS:
            if mark in line:
                params["test"] = kind
        if match := _EVENTS.match(line):
            events = match[1]
    if params["test"] == "unknown" and events and events == params.get("threads"):
        params["test"] = "mutex"
    return params


def _sysbench_runs(document: Document) -> Iterator[tuple[str, int, list[tuple[int, str]]]]:
    """Yield version, first line and lines of each run."""
    run: tuple[str, int, list[tuple[int, str]]] | None = None
    for number, line in document.lines:
        if match := _BEGIN.match(line):
            if run:
                yield run
            run = (match[1], number, [])
        elif run:
            run[2].append((number, line))
    if run:
        yield run


# --- schbench ---

_SECTION = re.compile(r"^\s*(?:(Wakeup|Request) )?Latenc(?:y|ies) percentiles \((\w+)\)", re.IGNORECASE)
_RATES = re.compile(r"^\s*RPS percentiles")
_PERCENTILE = re.compile(r"^[\s*]*(\d+\.\d+)th: (\S+)")
_AVERAGE = re.compile(r"^\s*average rps: (\S+)")
_UNITS = {"usec": "us", "usecs": "us", "us": "us", "msec": "ms", "ms": "ms", "nsec": "ns"}


def is_schbench(document: Document) -> bool:
    return any(_SECTION.match(line) for line in document.text[:5000].splitlines())


def read_schbench(document: Document) -> Reading:
    """schbench: its text, one file a run. The last report of a run counts, the earlier ones are its progress."""
    metrics: list[Metric] = []
    section, unit, at, has_numbers = "", "us", 0, True
    for number, line in document.lines:
        if match := _SECTION.match(line):
            if not has_numbers:
                document.fault(f"line {at}", "a run cut short: expected percentiles, found another section")
            section, at, has_numbers = f"{(match[1] or 'wakeup').lower()}_latency", number, False
            unit = _UNITS.get(match[2].lower(), "")
            if not unit:
                document.fault(f"line {number}", f"expected usec, msec or nsec, found {match[2]!r}")
        elif _RATES.match(line):
            section = ""
        elif (match := _PERCENTILE.match(line)) and section:
            has_numbers = True
            name = f"schbench.{section}_{match[1]}th_{unit}"
            metrics += document.metric(name, match[2], f"line {number}", unit, LOWER)
        elif match := _AVERAGE.match(line):
            metrics += document.metric("schbench.requests_per_sec", match[1], f"line {number}", "1/s", HIGHER)
    if not has_numbers:
        document.fault(f"line {at}", "a run cut short: expected percentiles, found the end of the file")
    last = {metric.name: metric for metric in metrics}
    return Reading((Test("schbench", {}, tuple(last.values())),), tool="schbench")


# --- hackbench ---

_HACKBENCH_RUN = re.compile(
    r"Running in (process|thread(?:ed)?) mode with (\d+) groups? using (\d+) file descriptors each"
)
_WORK = re.compile(r"Each sender will pass (\d+) messages of (\d+) bytes")
_TIME = re.compile(r"Time: (\S+)$")


def is_hackbench(document: Document) -> bool:
    return bool(_HACKBENCH_RUN.search(document.text[:5000]))


def read_hackbench(document: Document) -> Reading:
    """hackbench of rt-tests: its text, one run or several after each other."""
    samples = Samples()
    params: dict[str, str] = {}
    started = 0  # the line of a run whose time is not known yet
    for number, line in document.lines:
        if match := _HACKBENCH_RUN.search(line):
            if started:
                document.fault(f"line {started}", "a run cut short: expected its Time, found another run")
            started = number
            params = {"mode": match[1].replace("threaded", "thread"), "groups": match[2], "fds": match[3]}
        elif match := _WORK.search(line):
            params |= {"messages": match[1], "bytes": match[2]}
        elif match := _TIME.match(line.strip()):
            seconds = None
            if re.fullmatch(r"\d+\.\d{0,2}", match[1]):
                document.fault(f"line {number}", f"a run cut short: expected three decimals, found {match[1]!r}")
            else:
                seconds = document.number(match[1], f"line {number}", above=0)
            if not started:
                document.fault(f"line {number}", "expected the line `Running in …` before a Time")
            samples.add("hackbench", params, "hackbench.time", seconds, "s", LOWER)
            started = 0
    if started:
        document.fault(f"line {started}", "a run cut short: expected its Time, found the end of the file")
    return Reading(tuple(samples.tests()), tool="hackbench")


# --- cyclictest ---

_FIELDS = ("min", "avg", "max")
_FILES = ("--j", "--histfile", "--fifo")  # --js is --json, too
_LOOPS = re.compile(r"(?:^|\s)(?:-[a-zA-Z]*l\s?|--loops[\s=])(\d{1,12})(?!\S)")
_DURATION = re.compile(r"(?:^|\s)(?:-[a-zA-Z]*D|--duration)")


def is_cyclictest(document: Document) -> bool:
    value = document.json
    if not isinstance(value, dict) or "thread" not in value:
        return False
    program, _, _ = _text(value, "cmdline").partition(" ")  # the other tools of rt-tests have the same head
    return program.endswith("cyclictest")


def read_cyclictest(document: Document) -> Reading:
    """cyclictest of rt-tests: the JSON of `--json=FILE`, one file a run. Each of its threads is a test.

    Latencies are in microseconds, also those of a run with `--nsecs`. A run ends with the first thread that has done
    its loops; the others have fewer cycles then. What else the command line says is a parameter, but for the files that
    it writes, whose names differ from run to run.
    """
    value = document.json
    code = document.number(value.get("return_code"), "/return_code")
    if code:
        document.fault("/return_code", f"the run failed: expected 0, found {code:g}")
    options = " ".join(_options(_text(value, "cmdline")))
    system = document.mapping(value.get("sysinfo"), "/sysinfo")
    threads = document.mapping(value["thread"], "/thread")
    count = document.number(value.get("num_threads"), "/num_threads", lowest=1)
    if count is not None and count != len(threads):
        document.fault("/thread", f"a run cut short: expected {count:g} threads, found {len(threads)}")
    resolution = document.number(value.get("resolution_in_ns"), "/resolution_in_ns", lowest=0)
    if resolution not in (None, 0, 1):
        document.fault("/resolution_in_ns", f"expected 0 (microseconds) or 1 (nanoseconds), found {resolution:g}")
    params = {"threads": str(len(threads)), "options": options}
    tests, most = [], 0.0
    for name, element in threads.items():
        place = f"/thread/{name[:80]}"
        thread = document.mapping(element, place)
        if not thread:
            continue
        cycles = document.number(thread.get("cycles"), f"{place}/cycles", lowest=0)
        if cycles == 0:
            document.fault(f"{place}/cycles", "expected at least one cycle, found none")
        most = max(most, cycles or 0)
        metrics = tuple(_cyclictest_metrics(document, thread, 1000 if resolution else 1, place))
        tests.append(Test("cyclictest", {"test": f"thread {name}"} | params, metrics))
    loops = _LOOPS.search(options)
    if loops and tests and not document.faults and most < int(loops[1]) and not _DURATION.search(options):
        document.fault("/thread", f"a run cut short: expected {loops[1]} cycles, found {most:g}")
    return Reading(
        tuple(tests),
        tool=f"cyclictest {_text(value, 'rt_test_version')}".strip()[:80],
        kernel=_text(system, "release")[:100] if system.get("sysname") == "Linux" else "",
        machine=_text(system, "nodename")[:200],
    )


def _cyclictest_metrics(document: Document, thread: Mapping[str, Any], scale: int, place: str) -> Iterator[Metric]:
    latencies = {name: document.number(thread.get(name), f"{place}/{name}", lowest=0) for name in _FIELDS}
    numbers = [number for number in latencies.values() if number is not None]
    if len(numbers) == len(_FIELDS) and numbers != sorted(numbers):
        shown = ", ".join(f"{number:g}" for number in numbers)
        document.fault(place, f"expected min, avg and max in this order, found {shown}")
    for name, number in latencies.items():
        if number is not None:
            yield Metric(f"cyclictest.latency_{name}_us", (number / scale,), "us", LOWER)


def _text(value: Mapping[str, Any], key: str) -> str:
    """Return a text; some keys of rt-tests end in a colon."""
    found = value.get(f"{key}:", value.get(key))
    return " ".join(found.split()) if isinstance(found, str) else ""


def _options(command: str) -> Iterator[str]:
    """Yield the options without the files; cyclictest has no other arguments, so what follows one is its name."""
    is_file = False
    for word in command.split()[1:]:
        is_file = word.startswith(_FILES) or (is_file and not word.startswith("-"))
        if not is_file:
            yield word


# --- stress-ng ---

_REAL = "bogo-ops-per-second-real-time"
_IGNORED = ("stressor", "bogo-ops", "bogo-ops-per-second-usr-sys-time", "max-rss", _REAL)
_TIMES = ("wall-clock-time", "user-time", "system-time", "cpu-usage-per-instance")


def is_stress_ng(document: Document) -> bool:
    return "stress-ng-version:" in document.text[:2000]


def read_stress_ng(document: Document) -> Reading:
    """stress-ng: the YAML of `--yaml FILE --metrics`, one file a run. Each stressor is a test.

    As in lkp-tests, `ops_per_sec` is the bogo operations a second of real time.
    """
    try:
        value = read_yaml(document.text, "")
    except RejectedInput as rejection:
        document.fault(rejection.where.removeprefix(", "), rejection.why)
        return Reading(())
    if not document.text.rstrip().endswith("\n..."):
        document.fault("", "a run cut short: expected the three dots that end the file")
    document_root = document.mapping(value, "")
    system = document.mapping(document_root.get("system-info"), "/system-info")
    tests, seen = [], set()
    for place, stressor in document.objects(document_root.get("metrics"), "/metrics"):
        name = document.string(stressor.get("stressor"), f"{place}/stressor")
        if name in seen:
            document.fault(f"{place}/stressor", f"the stressor {name[:60]!r} stands twice")
        seen.add(name)
        own = f"stress-ng.{name}.ops_per_sec"
        metrics = [*document.metric(own, stressor.get(_REAL), f"{place}/{_REAL}", "ops/s", HIGHER)]
        for key, raw in stressor.items():
            if key in _IGNORED or not isinstance(key, str):
                continue
            number = document.number(raw, f"{place}/{key[:80]}")
            if number is not None and key not in _TIMES:
                metrics.append(Metric(f"stress-ng.{name}.{key}", (number,)))
        tests.append(Test("stress-ng", {"test": name}, tuple(metrics)))
    cpus = str(system.get("cpus-online", ""))
    return Reading(
        tuple(tests),
        tool=f"stress-ng {system.get('stress-ng-version', '')}".strip()[:80],
        kernel=str(system.get("release", ""))[:100],
        machine=str(system.get("hostname", ""))[:200],
        cpus=int(cpus) if cpus.isdecimal() and cpus.isascii() and int(cpus[:7]) > 0 else None,
    )


# --- will-it-scale ---

_COLUMNS = ["tasks", "processes", "processes_idle", "threads", "threads_idle", "linear"]


def is_will_it_scale(document: Document) -> bool:
    return [name.strip() for name in document.text.lstrip("\ufeff").partition("\n")[0].split(",")] == _COLUMNS


def read_will_it_scale(document: Document) -> Reading:
    """will-it-scale: the CSV of runtest.py, one file a run, called after its test case: `page_fault1.csv`.

    Per number of tasks it has the operations of processes and of threads a second. As in lkp-tests, the metrics are
    these divided by the tasks.
    """
    case = re.sub(r"[-.]\d+\Z", "", PurePath(document.name).stem)  # page_fault1-2: its 2nd run
    tests, seen = [], set()
    for place, row in document.rows:
        if not row:
            continue
        if len(row) != len(_COLUMNS):
            document.fault(place, f"expected {len(_COLUMNS)} values, found {len(row)}: a run cut short?")
            continue
        tasks, processes, _, threads, _, _ = (document.number(cell.strip(), place, lowest=0) for cell in row)
        if tasks in seen:
            document.fault(place, f"{tasks:g} tasks stand twice")
        seen.add(tasks)
        if not tasks or processes is None or threads is None:
            continue  # the row of 0 tasks is all zeros
        for mode, total in (("process", processes), ("thread", threads)):
            if total:
                metric = Metric(f"will-it-scale.per_{mode}_ops", (total / tasks,), "ops/s", HIGHER)
                tests.append(Test("will-it-scale", {"test": case, "mode": mode, "nr_task": f"{tasks:g}"}, (metric,)))
    return Reading(tuple(tests), tool="will-it-scale")


FORMATS = (
    Format("perf stat -j or -x", is_perf_stat, read_perf_stat, by_line=True),
    Format("perf bench", is_perf_bench, read_perf_bench),
    Format("sysbench", is_sysbench, read_sysbench),
    Format("schbench", is_schbench, read_schbench),
    Format("hackbench", is_hackbench, read_hackbench),
    Format("cyclictest JSON", is_cyclictest, read_cyclictest),
    Format("stress-ng YAML", is_stress_ng, read_stress_ng),
    Format("will-it-scale CSV", is_will_it_scale, read_will_it_scale),
)
