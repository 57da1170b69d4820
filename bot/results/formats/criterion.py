"""Criterion.rs: what `cargo criterion` and `cargo bench` write about a benchmark. Pure.

`cargo criterion --message-format=json` prints a JSON object a line, with the measured values of each benchmark. `cargo
bench` leaves a folder per benchmark, with raw.csv, sample.json and estimates.json in new/; the JSON files do not name
their benchmark, so it follows from their path. A measured value is the time of a batch: divided by its iterations it is
a sample. estimates.json has only a mean, which counts as one run.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from bot.results.formats.benchmark import LOWER, Document, Metric, Reading, Test, words_of

NAME = "Criterion"
_COLUMNS = (
    *("group", "function", "value", "throughput_num", "throughput_type"),
    *("sample_measured_value", "unit", "iteration_count"),
)


def recognises(document: Document) -> bool:
    head = document.text[:5000]
    if '"reason"' in head and '"benchmark-complete"' in document.text:
        return True
    return _is_raw(document) or _is_sample(document.json) or _is_estimates(document.json)


def _is_raw(document: Document) -> bool:
    return document.text.partition("\n")[0].strip() == ",".join(_COLUMNS)


def _is_sample(value: Any) -> bool:
    return isinstance(value, dict) and {"sampling_mode", "iters", "times"} <= value.keys()


def _is_estimates(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mean"), dict) and "point_estimate" in value["mean"]


def read(document: Document) -> Reading:
    if _is_raw(document):
        tests = _of_raw(document)
    elif _is_sample(document.json):
        value = document.json
        name = _name_of(document)
        metric = _metric(document, value["times"], value["iters"], "ns", "")
        tests = [Test("criterion", {"test": name}, metric)]
    elif _is_estimates(document.json):
        mean = document.number(document.json["mean"]["point_estimate"], "/mean/point_estimate", lowest=0)
        metric = (Metric("criterion.time", (mean,), "ns", LOWER),) if mean is not None else ()
        tests = [Test("criterion", {"test": _name_of(document)}, metric)]
    else:
        tests = _of_messages(document)
    return Reading(tuple(tests), tool="Criterion")


def _name_of(document: Document) -> str:
    """Return the benchmark of target/criterion/GROUP/FUNCTION/new/sample.json."""
    parts = PurePath(document.name).parts
    folders = [part for part in parts[:-1] if part not in ("new", "base")]
    if "criterion" in folders:
        folders = folders[len(folders) - folders[::-1].index("criterion") :]
    return "/".join(folders[-2:]) or "benchmark"


def _metric(document: Document, times: Any, counts: Any, unit: str, place: str) -> tuple[Metric, ...]:
    measured = document.numbers(times, f"{place}/times")
    iterations = document.numbers(counts, f"{place}/iters")
    if measured and iterations and len(measured) != len(iterations):
        document.fault(place, f"expected as many iteration counts as values ({len(measured)}), found {len(iterations)}")
        return ()
    if any(count <= 0 for count in iterations):
        document.fault(place, "expected iteration counts above 0")
        return ()
    samples = tuple(time / count for time, count in zip(measured, iterations, strict=False))
    return (Metric("criterion.time", samples, unit, LOWER),) if samples else ()


def _of_messages(document: Document) -> list[Test]:
    tests: list[Test] = []
    seen = set()
    for number, line in document.lines:
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            document.fault(place, f"not JSON, or cut short: {words_of(error)}")
            continue
        if not isinstance(message, dict) or message.get("reason") != "benchmark-complete":
            continue
        name = document.string(message.get("id"), f"{place}, /id")
        if name in seen:
            document.fault(f"{place}, /id", f"the benchmark {name[:80]!r} stands twice")
        seen.add(name)
        unit = document.string(message.get("unit"), f"{place}, /unit")
        metric = _metric(document, message.get("measured_values"), message.get("iteration_count"), unit, place)
        tests.append(Test("criterion", {"test": name}, metric))
    return tests


def _of_raw(document: Document) -> list[Test]:
    rows: dict[str, list[tuple[float, float]]] = {}
    units: dict[str, str] = {}
    reader = csv.reader(io.StringIO(document.text))
    next(reader)
    try:
        for row in reader:
            place = f"line {reader.line_num}"
            if len(row) != len(_COLUMNS):
                if row:
                    document.fault(place, f"expected {len(_COLUMNS)} values, found {len(row)}: a run cut short?")
                continue
            _add_row(document, row, place, rows, units)
    except csv.Error as error:
        document.fault(f"line {reader.line_num}", f"expected CSV: {error}")
    return [
        Test(
            "criterion",
            {"test": name},
            (Metric("criterion.time", tuple(time / count for time, count in pairs), units[name], LOWER),),
        )
        for name, pairs in rows.items()
    ]


def _add_row(
    document: Document,
    row: Sequence[str],
    place: str,
    rows: dict[str, list[tuple[float, float]]],
    units: dict[str, str],
) -> None:
    name = "/".join(part.strip() for part in row[:3] if part.strip())
    time, count = document.number(row[5], place, lowest=0), document.number(row[7], place, lowest=0)
    if units.setdefault(name, row[6]) != row[6]:
        document.fault(place, f"mixed units of {name[:80]}: {units[name]} and {row[6][:20]}")
    if count == 0:
        document.fault(place, "expected an iteration count above 0")
    elif time is not None and count is not None:
        rows.setdefault(name, []).append((time, count))
