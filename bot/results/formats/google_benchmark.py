"""Google Benchmark: the JSON of `--benchmark_format=json` or `--benchmark_out`. Pure.

Every repetition is a sample. Aggregates (mean, median, stddev) are never mixed with them: they count only where a
file has nothing else (`--benchmark_report_aggregates_only`), as the mean and deviation of so many repetitions.
"""

import math
from collections.abc import Mapping
from typing import Any

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test
from tracker.domain.statistics import SampleSummary

NAME = "Google Benchmark JSON"
_UNITS = ("ns", "us", "ms", "s")
_RATES = {"items_per_second": "items/s", "bytes_per_second": "B/s"}


def recognises(document: Document) -> bool:
    value = document.json
    return (
        isinstance(value, dict)
        and isinstance(value.get("context"), dict)
        and "benchmarks" in value
        and ("library_build_type" in value["context"] or "mhz_per_cpu" in value["context"])
    )


def read(document: Document) -> Reading:
    context = document.json["context"]
    runs: dict[str, dict[str, list[tuple[float, str, str]]]] = {}
    aggregates: dict[str, dict[str, Mapping[str, Any]]] = {}
    units: dict[str, str] = {}
    for index, element in enumerate(document.sequence(document.json["benchmarks"], "/benchmarks")):
        place = f"/benchmarks/{index}"
        run = document.mapping(element, place)
        if not run:
            continue
        name = document.string(run.get("run_name", run.get("name")), f"{place}/name")
        if run.get("error_occurred"):
            document.fault(place, f"{name} failed: {str(run.get('error_message', ''))[:100]}")
            continue
        unit = run.get("time_unit", "ns")
        if unit not in _UNITS:
            document.fault(f"{place}/time_unit", f"expected one of {', '.join(_UNITS)}, found {str(unit)[:20]!r}")
        elif units.setdefault(name, unit) != unit:
            document.fault(f"{place}/time_unit", f"mixed units of {name}: {units[name]} and {unit}")
        if run.get("run_type") == "aggregate":
            aggregates.setdefault(name, {})[str(run.get("aggregate_name"))] = {**run, "place": place}
            continue
        metrics = runs.setdefault(name, {})
        for field in ("real_time", "cpu_time"):
            number = document.number(run.get(field), f"{place}/{field}", lowest=0)
            if number is not None:
                metrics.setdefault(field, []).append((number, str(unit), LOWER))
        for field, rate in _RATES.items():
            if field in run:
                number = document.number(run[field], f"{place}/{field}", lowest=0)
                if number is not None:
                    metrics.setdefault(field, []).append((number, rate, HIGHER))
    tests = [
        Test(
            "google-benchmark",
            {"test": name},
            tuple(
                Metric(
                    f"google-benchmark.{field}", tuple(number for number, _, _ in values), values[0][1], values[0][2]
                )
                for field, values in metrics.items()
            ),
        )
        for name, metrics in runs.items()
    ]
    tests += [_of_aggregates(document, name, parts) for name, parts in aggregates.items() if name not in runs]
    cpus = context.get("num_cpus")
    return Reading(
        tuple(tests),
        tool=f"Google Benchmark {context.get('library_version', '')}".strip(),
        machine=str(context.get("host_name", ""))[:200],
        cpus=cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus > 0 else None,
    )


def _of_aggregates(document: Document, name: str, parts: Mapping[str, Mapping[str, Any]]) -> Test:
    metrics = []
    mean, deviation = parts.get("mean"), parts.get("stddev")
    if mean is None:
        document.fault("/benchmarks", f"{name}: expected its repetitions, or the mean of them; found neither")
        return Test("google-benchmark", {"test": name}, ())
    count = mean.get("repetitions")
    count = count if isinstance(count, int) and count > 0 else 1
    for field in ("real_time", "cpu_time"):
        value = document.number(mean.get(field), f"{mean['place']}/{field}", lowest=0)
        spread = None
        if deviation is not None and count > 1:
            spread = document.number(deviation.get(field), f"{deviation['place']}/{field}", lowest=0)
        if value is not None:
            # its deviation is divided by n - 1, ours by n
            spread = spread * math.sqrt((count - 1) / count) if spread is not None else None
            unit = str(mean.get("time_unit", "ns"))
            metrics.append(Metric(f"google-benchmark.{field}", (), unit, LOWER, SampleSummary(value, spread, count)))
    return Test("google-benchmark", {"test": name}, tuple(metrics))
