"""perf bench: its default text, one benchmark or several after each other. Pure.

Each `# Running 'sched/pipe' benchmark:` begins a run; equal benchmarks in one file are samples of each other.
"""

import re

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "perf bench"
_RUN = re.compile(r"# Running '?([\w-]+/[\w-]+)'? benchmark")
_FUNCTION = re.compile(r"# function '([^']{1,60})'")
_NUMBER = r"(\S+)"
# What a line says: pattern, metric, unit, direction
_LINES = (
    (re.compile(rf"^\s*Total time: {_NUMBER} \[sec\]"), "total_time", "s", LOWER),
    (re.compile(rf"^\s*{_NUMBER} usecs/op\b"), "usecs_per_op", "us", LOWER),
    (re.compile(rf"^\s*{_NUMBER} ops/sec\b"), "ops_per_sec", "ops/s", HIGHER),
    (re.compile(rf"^\s*{_NUMBER} GB/sec\b"), "GB_per_sec", "GB/s", HIGHER),
    (re.compile(rf"^\s*{_NUMBER} MB/sec\b"), "MB_per_sec", "MB/s", HIGHER),
    (re.compile(rf"^Averaged {_NUMBER} operations/sec"), "ops_per_sec", "ops/s", HIGHER),
    (re.compile(rf"^(?:Requeued|Wokeup|Woke up) .* in {_NUMBER} ms\b"), "time_ms", "ms", LOWER),
)


def recognises(document: Document) -> bool:
    return bool(_RUN.search(document.text[:5000]))


def read(document: Document) -> Reading:
    samples: dict[tuple[str, str], dict[tuple[str, str, str], list[float]]] = {}
    name, function, started, has_number = "", "", 0, True
    for number, line in document.lines:
        if match := _RUN.search(line):
            if not has_number:
                document.fault(f"line {started}", f"{name}: a run cut short: expected its numbers, found another run")
            name, function, started, has_number = match[1], "", number, False
        elif match := _FUNCTION.match(line.strip()):
            function = match[1]
        elif name:
            for pattern, metric, unit, direction in _LINES:
                if match := pattern.match(line):
                    has_number = True
                    value = document.number(match[1], f"line {number}", above=0)
                    if value is not None:
                        metrics = samples.setdefault((name, function), {})
                        metrics.setdefault((metric, unit, direction), []).append(value)
                    break
    if not has_number:
        document.fault(f"line {started}", f"{name}: a run cut short: expected its numbers, found the end of the file")
    tests = []
    for (name, function), metrics in samples.items():
        suite = f"perf-bench-{name.replace('/', '-')}"
        params = {"function": function} if function else {}
        values = tuple(Metric(f"{suite}.{key[0]}", tuple(found), key[1], key[2]) for key, found in metrics.items())
        tests.append(Test(suite, params, values))
    return Reading(tuple(tests), tool="perf bench")
