"""cyclictest of rt-tests: the JSON of `--json=FILE`, one file a run. Each of its threads is a test. Pure.

Latencies are in microseconds, also those of a run with `--nsecs`. A run ends with the first thread that has done its
loops; the others have fewer cycles then. What else the command line says is a parameter, but for the files that it
writes, whose names differ from run to run.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.results.formats.benchmark import LOWER, Document, Metric, Reading, Test

NAME = "cyclictest JSON"
_FIELDS = ("min", "avg", "max")
_FILES = ("--j", "--histfile", "--fifo")  # --js is --json, too
_LOOPS = re.compile(r"(?:^|\s)(?:-[a-zA-Z]*l\s?|--loops[\s=])(\d{1,12})(?!\S)")
_DURATION = re.compile(r"(?:^|\s)(?:-[a-zA-Z]*D|--duration)")


def recognises(document: Document) -> bool:
    value = document.json
    if not isinstance(value, dict) or "thread" not in value:
        return False
    program, _, _ = _text(value, "cmdline").partition(" ")  # the other tools of rt-tests have the same head
    return program.endswith("cyclictest")


def read(document: Document) -> Reading:
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
        metrics = tuple(_metrics(document, thread, 1000 if resolution else 1, place))
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


def _metrics(document: Document, thread: Mapping[str, Any], scale: int, place: str) -> Iterator[Metric]:
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
