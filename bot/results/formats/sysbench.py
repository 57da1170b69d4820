"""sysbench 1.0: its text, one run or several after each other. Pure."""

import re
from collections.abc import Iterator

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "sysbench"
_BEGIN = re.compile(r"^sysbench (\d[\w.-]*)")
_THREADS = re.compile(r"^Number of threads: (\d+)")
_NUMBER = r"([^\s()]+)"
# Which test it is, by a line that only this one prints
_KINDS = (
    ("CPU speed:", "cpu"),
    ("memory speed test", "memory"),
    ("File operations:", "fileio"),
    ("SQL statistics:", "oltp"),
)
_LINES = (
    (re.compile(rf"^\s*events per second:\s+{_NUMBER}"), "events_per_sec", "events/s", HIGHER),
    (re.compile(rf"^\s*events/s \(eps\):\s+{_NUMBER}"), "events_per_sec", "events/s", HIGHER),
    (re.compile(rf"^\s*transactions:\s+\d+\s+\({_NUMBER} per sec"), "transactions_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*queries:\s+\d+\s+\({_NUMBER} per sec"), "queries_per_sec", "1/s", HIGHER),
    (re.compile(rf"^Total operations: \d+ \(\s*{_NUMBER} per second"), "operations_per_sec", "1/s", HIGHER),
    (re.compile(rf"^[\d.]+ MiB transferred \({_NUMBER} MiB/sec"), "transferred_MiB_per_sec", "MiB/s", HIGHER),
    (re.compile(rf"^\s*reads/s:\s+{_NUMBER}"), "reads_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*writes/s:\s+{_NUMBER}"), "writes_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*fsyncs/s:\s+{_NUMBER}"), "fsyncs_per_sec", "1/s", HIGHER),
    (re.compile(rf"^\s*read, MiB/s:\s+{_NUMBER}"), "read_MiB_per_sec", "MiB/s", HIGHER),
    (re.compile(rf"^\s*written, MiB/s:\s+{_NUMBER}"), "written_MiB_per_sec", "MiB/s", HIGHER),
    (re.compile(r"^\s*total time:\s+(\S+?)s$"), "total_time", "s", LOWER),
    (re.compile(rf"^\s*avg:\s+{_NUMBER}"), "latency_avg_ms", "ms", LOWER),
    (re.compile(rf"^\s*95th percentile:\s+{_NUMBER}"), "latency_95th_ms", "ms", LOWER),
    (re.compile(rf"^\s*99th percentile:\s+{_NUMBER}"), "latency_99th_ms", "ms", LOWER),
)  # fmt: skip


def recognises(document: Document) -> bool:
    return any(_BEGIN.match(line) for line in document.text[:5000].splitlines())


def read(document: Document) -> Reading:
    samples: dict[tuple[tuple[str, str], ...], dict[tuple[str, str, str], list[float]]] = {}
    versions = set()
    for version, start, lines in _runs(document):
        versions.add(version)
        params, found = {"test": "unknown"}, {}
        is_whole = False
        for number, line in lines:
            is_whole = is_whole or line.startswith("General statistics:")
            if match := _THREADS.match(line):
                params["threads"] = match[1]
            for mark, kind in _KINDS:
                if mark in line:
                    params["test"] = kind
            for pattern, metric, unit, direction in _LINES:
                if match := pattern.match(line):
                    value = document.number(match[1], f"line {number}", lowest=0)
                    if value is not None:
                        found[metric, unit, direction] = value
                    break
        if not is_whole:
            document.fault(f"line {start}", "a run cut short: expected its general statistics, found none")
        metrics = samples.setdefault(tuple(params.items()), {})
        for key, value in found.items():
            metrics.setdefault(key, []).append(value)
    if len(versions) > 1:
        document.fault("", f"expected one version of sysbench, found {', '.join(sorted(versions))}")
    return Reading(
        tuple(
            Test(
                "sysbench",
                dict(params),
                tuple(Metric(f"sysbench.{key[0]}", tuple(values), key[1], key[2]) for key, values in metrics.items()),
            )
            for params, metrics in samples.items()
        ),
        tool=f"sysbench {min(versions, default='')}".strip(),
    )


def _runs(document: Document) -> Iterator[tuple[str, int, list[tuple[int, str]]]]:
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
