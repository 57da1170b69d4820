"""Bencher's metric format (BMF): a JSON object of benchmarks, each with its measures and their values. Pure.

`{"benchmark": {"latency": {"value": 88.2, "lower_value": 87.4, "upper_value": 89.0}}}`; a file is one run. Bencher's
own measures have its units; of any other one neither unit nor direction is stated.
"""

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "Bencher Metric Format"
_MEASURES = {
    "latency": ("ns", LOWER),
    "throughput": ("ops/s", HIGHER),
    "file-size": ("B", LOWER),
    "build-time": ("s", LOWER),
    "instructions": ("instructions", LOWER),
}


def recognises(document: Document) -> bool:
    value = document.json
    if not isinstance(value, dict) or not value:
        return False
    measures = [part for test in value.values() if isinstance(test, dict) for part in test.values()]
    return bool(measures) and any(isinstance(part, dict) and "value" in part for part in measures)


def read(document: Document) -> Reading:
    tests = []
    for name, element in document.json.items():
        place = f"/{name[:80]}"
        metrics = []
        for measure, part in document.mapping(element, place).items():
            at = f"{place}/{measure[:80]}"
            value = document.number(document.mapping(part, at).get("value"), f"{at}/value")
            unit, direction = _MEASURES.get(measure, ("", ""))
            if value is not None:
                metrics.append(Metric(f"bencher.{measure}", (value,), unit, direction))
        tests.append(Test("bencher", {"test": name}, tuple(metrics)))
    return Reading(tuple(tests), tool="Bencher")
