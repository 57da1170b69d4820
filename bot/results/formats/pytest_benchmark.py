"""pytest-benchmark: the JSON of `--benchmark-json`. Each benchmark is a test, each of its rounds a sample. Pure.

Saved without `--benchmark-save-data` it has no rounds; then their mean, deviation and number count.
"""

import math

from bot.results.formats.benchmark import LOWER, Document, Metric, Reading, Test
from tracker.domain.statistics import SampleSummary

NAME = "pytest-benchmark JSON"


def recognises(document: Document) -> bool:
    value = document.json
    return isinstance(value, dict) and "machine_info" in value and "benchmarks" in value


def read(document: Document) -> Reading:
    machine = document.mapping(document.json["machine_info"], "/machine_info")
    tests, seen = [], set()
    for index, element in enumerate(document.sequence(document.json["benchmarks"], "/benchmarks")):
        place = f"/benchmarks/{index}"
        benchmark = document.mapping(element, place)
        if not benchmark:
            continue
        name = document.string(benchmark.get("fullname", benchmark.get("name")), f"{place}/fullname")
        if name in seen:
            document.fault(f"{place}/fullname", f"the benchmark {name[:80]!r} stands twice")
        seen.add(name)
        stats = document.mapping(benchmark.get("stats"), f"{place}/stats")
        if not stats:
            continue
        samples: tuple[float, ...] = ()
        summary = None
        if "data" in stats:
            samples = document.numbers(stats["data"], f"{place}/stats/data")
        else:
            mean = document.number(stats.get("mean"), f"{place}/stats/mean", lowest=0)
            spread = document.number(stats.get("stddev"), f"{place}/stats/stddev", lowest=0)
            rounds = document.number(stats.get("rounds"), f"{place}/stats/rounds", lowest=1)
            if mean is not None and spread is not None and rounds is not None:
                count = int(rounds)  # its deviation is divided by n - 1, ours by n
                summary = SampleSummary(mean, spread * math.sqrt((count - 1) / count), count)
        metric = Metric("pytest-benchmark.time", samples, "s", LOWER, summary)
        tests.append(Test("pytest-benchmark", {"test": name}, (metric,) if samples or summary else ()))
    release = machine.get("release")
    return Reading(
        tuple(tests),
        tool=f"pytest-benchmark {document.json.get('version', '')}".strip()[:80],
        kernel=str(release)[:100] if isinstance(release, str) and machine.get("system") == "Linux" else "",
        machine=str(machine.get("node", ""))[:200],
    )
