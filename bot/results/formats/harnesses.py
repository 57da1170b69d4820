"""Harnesses that run benchmarks of any kind, and plain CSV for what no harness runs. Pure."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from xml.etree import ElementTree

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Format, Metric, Reading, Samples, Test, words_of
from tracker.domain.statistics import SampleSummary

# --- hyperfine ---


def is_hyperfine(document: Document) -> bool:
    value = document.json
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, list) and any(isinstance(part, dict) and "command" in part for part in results)


def read_hyperfine(document: Document) -> Reading:
    """hyperfine: the JSON of `--export-json`. Each command is a test, each of its runs a sample."""
    tests, seen = [], set()
    for place, result in document.objects(document.json["results"], "/results"):
        command = document.string(result.get("command"), f"{place}/command")
        given = result.get("parameters", {})
        params = {
            "command": command,
            **{str(name): str(value) for name, value in (given.items() if isinstance(given, dict) else ())},
        }
        if tuple(params.items()) in seen:
            document.fault(
                f"{place}/command", f"the command {command[:60]!r} stands twice: name it with --command-name"
            )
        seen.add(tuple(params.items()))
        codes = result.get("exit_codes")
        for run, code in enumerate(codes if isinstance(codes, list) else ()):
            if code != 0:
                document.fault(f"{place}/exit_codes/{run}", f"the command failed: expected exit code 0, found {code}")
        times = document.numbers(result.get("times"), f"{place}/times")
        runs = result.get("times")
        if isinstance(codes, list) and isinstance(runs, list) and len(codes) != len(runs):
            document.fault(f"{place}/exit_codes", f"expected one for each of {len(runs)} runs, found {len(codes)}")
        for run, seconds in enumerate(times):
            if seconds <= 0:
                document.fault(f"{place}/times/{run}", f"expected seconds above 0, found {seconds:g}")
        metrics = [Metric("hyperfine.time", times, "s", LOWER)]
        for name in ("user", "system"):
            if result.get(name) is not None:
                metrics += document.metric(f"hyperfine.{name}_time", result[name], f"{place}/{name}", "s", LOWER)
        tests.append(Test("hyperfine", params, tuple(metrics)))
    return Reading(tuple(tests), tool="hyperfine")


# --- Google Benchmark ---

_TIME_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_OF_COMPLEXITY = ("BigO", "RMS")  # a curve through the sizes of a benchmark, no run of it
_RATES = {"items_per_second": "items/s", "bytes_per_second": "B/s"}


def is_google_benchmark(document: Document) -> bool:
    value = document.json
    return (
        isinstance(value, dict)
        and isinstance(value.get("context"), dict)
        and "benchmarks" in value
        and ("library_build_type" in value["context"] or "mhz_per_cpu" in value["context"])
    )


def read_google_benchmark(document: Document) -> Reading:
    """Google Benchmark: the JSON of `--benchmark_format=json` or `--benchmark_out`.

    Every repetition is a sample. Aggregates (mean, median, stddev) are never mixed with them: they count only where a
    file has nothing else (`--benchmark_report_aggregates_only`), as the mean and deviation of so many repetitions.
    """
    context = document.json["context"]
    runs = Samples()
    aggregates: dict[str, dict[str, Mapping[str, Any]]] = {}
    units: dict[str, str] = {}
    for place, run in document.objects(document.json["benchmarks"], "/benchmarks"):
        name = document.string(run.get("run_name", run.get("name")), f"{place}/name")
        if run.get("error_occurred"):
            document.fault(place, f"{name} failed: {str(run.get('error_message', ''))[:100]}")
            continue
        unit = run.get("time_unit", "ns")
        if unit not in _TIME_UNITS:
            document.fault(f"{place}/time_unit", f"expected one of {', '.join(_TIME_UNITS)}, found {str(unit)[:20]!r}")
        elif units.setdefault(name, unit) != unit:
            document.fault(f"{place}/time_unit", f"mixed units of {name}: {units[name]} and {unit}")
        if run.get("aggregate_name") in _OF_COMPLEXITY:
            continue
        if run.get("run_type") == "aggregate":
            aggregates.setdefault(name, {})[str(run.get("aggregate_name"))] = {**run, "place": place}
            continue
        # Each benchmark has a unit of its own, but the metric is one
        times = {field: ("ns", LOWER, _TIME_UNITS.get(unit, 1)) for field in ("real_time", "cpu_time")}
        rates = {field: (rate, HIGHER, 1) for field, rate in _RATES.items() if field in run}
        for field, (in_unit, direction, factor) in (times | rates).items():
            number = document.number(run.get(field), f"{place}/{field}", lowest=0)
            number = number if number is None else number * factor
            runs.add("google-benchmark", {"test": name}, f"google-benchmark.{field}", number, in_unit, direction)
    tests = runs.tests()
    repeated = {test.params["test"] for test in tests}
    tests += [_of_aggregates(document, name, parts) for name, parts in aggregates.items() if name not in repeated]
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
            factor = _TIME_UNITS.get(str(mean.get("time_unit", "ns")), 1)
            spread = factor * spread * math.sqrt((count - 1) / count) if spread is not None else None
            summary = SampleSummary(factor * value, spread, count)
            metrics.append(Metric(f"google-benchmark.{field}", (), "ns", LOWER, summary))
    return Test("google-benchmark", {"test": name}, tuple(metrics))


# --- pytest-benchmark ---


def is_pytest_benchmark(document: Document) -> bool:
    value = document.json
    return isinstance(value, dict) and "machine_info" in value and "benchmarks" in value


def read_pytest_benchmark(document: Document) -> Reading:
    """pytest-benchmark: the JSON of `--benchmark-json`. Each benchmark is a test, each of its rounds a sample.

    Saved without `--benchmark-save-data` it has no rounds; then their mean, deviation and number count.
    """
    machine = document.mapping(document.json["machine_info"], "/machine_info")
    tests, seen = [], set()
    for place, benchmark in document.objects(document.json["benchmarks"], "/benchmarks"):
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


# --- Criterion ---

_CRITERION_COLUMNS = (
    "group", "function", "value", "throughput_num", "throughput_type",
    "sample_measured_value", "unit", "iteration_count",
)  # fmt: skip


def is_criterion(document: Document) -> bool:
    head = document.text[:5000]
    if '"reason"' in head and '"benchmark-complete"' in document.text:
        return True
    return _is_raw(document) or _is_sample(document.json) or _is_estimates(document.json)


def _is_raw(document: Document) -> bool:
    return document.text.partition("\n")[0].strip() == ",".join(_CRITERION_COLUMNS)


def _is_sample(value: Any) -> bool:
    return isinstance(value, dict) and {"sampling_mode", "iters", "times"} <= value.keys()


def _is_estimates(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mean"), dict) and "point_estimate" in value["mean"]


def read_criterion(document: Document) -> Reading:
    """Criterion.rs: what `cargo criterion` and `cargo bench` write about a benchmark.

    `cargo criterion --message-format=json` prints a JSON object a line, with the measured values of each benchmark.
    `cargo bench` leaves a folder per benchmark, with raw.csv, sample.json and estimates.json in new/; the JSON files do
    not name their benchmark, so it follows from their path. A measured value is the time of a batch: divided by its
    iterations it is a sample. estimates.json has only a mean, which counts as one run.
    """
    if _is_raw(document):
        tests = _of_raw(document)
    elif _is_sample(document.json):
        value = document.json
        name = _criterion_name(document)
        metric = _criterion_metric(document, value["times"], value["iters"], "ns", "")
        tests = [Test("criterion", {"test": name}, metric)]
    elif _is_estimates(document.json):
        mean = document.json["mean"]["point_estimate"]
        metric = tuple(document.metric("criterion.time", mean, "/mean/point_estimate", "ns", LOWER))
        tests = [Test("criterion", {"test": _criterion_name(document)}, metric)]
    else:
        tests = _of_messages(document)
    return Reading(tuple(tests), tool="Criterion")


def _criterion_name(document: Document) -> str:
    """Return the benchmark of target/criterion/GROUP/FUNCTION/new/sample.json."""
    parts = PurePath(document.name).parts
    folders = [part for part in parts[:-1] if part not in ("new", "base")]
    if "criterion" in folders:
        folders = folders[len(folders) - folders[::-1].index("criterion") :]
    return "/".join(folders[-2:]) or "benchmark"


def _criterion_metric(document: Document, times: Any, counts: Any, unit: str, place: str) -> tuple[Metric, ...]:
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
        metric = _criterion_metric(
            document, message.get("measured_values"), message.get("iteration_count"), unit, place
        )
        tests.append(Test("criterion", {"test": name}, metric))
    return tests


def _of_raw(document: Document) -> list[Test]:
    samples = Samples()
    units: dict[str, str] = {}
    for place, row in document.rows:
        if len(row) != len(_CRITERION_COLUMNS):
            if row:
                document.fault(place, f"expected {len(_CRITERION_COLUMNS)} values, found {len(row)}: a run cut short?")
            continue
        name = "/".join(part.strip() for part in row[:3] if part.strip())
        time, count = document.number(row[5], place, lowest=0), document.number(row[7], place, lowest=0)
        if units.setdefault(name, row[6]) != row[6]:
            document.fault(place, f"mixed units of {name[:80]}: {units[name]} and {row[6][:20]}")
        if count == 0:
            document.fault(place, "expected an iteration count above 0")
        sample = time / count if time is not None and count else None
        samples.add("criterion", {"test": name}, "criterion.time", sample, units[name], LOWER)
    return samples.tests()


# --- Phoronix Test Suite ---

_KERNEL = re.compile(r"\bKernel: (\S+)")
_DIRECTIONS = {"HIB": HIGHER, "LIB": LOWER}


def is_phoronix(document: Document) -> bool:
    return "<PhoronixTestSuite>" in document.text[:2000]


def read_phoronix(document: Document) -> Reading:
    """Phoronix Test Suite: composite.xml, one kernel a file. Each result is a test, each of its raw values a sample.

    `Proportion` says which direction is better (HIB, LIB). A document type or entity is refused: PTS writes none, and
    an entity could make a small file expand without end.
    """
    if "<!DOCTYPE" in document.text or "<!ENTITY" in document.text:
        document.fault("", "expected a composite.xml without a document type, found one")
        return Reading(())
    try:
        root = ElementTree.fromstring(document.text)
    except (ElementTree.ParseError, ValueError) as error:
        line = getattr(error, "position", (0, 0))[0]
        document.fault(f"line {line}", f"not XML, or cut short: {error}")
        return Reading(())
    tests, seen = [], set()
    for index, result in enumerate(root.iter("Result"), start=1):
        place = f"Result {index}"
        title, description = _text(result, "Identifier") or _text(result, "Title"), _text(result, "Description")
        if not title:
            document.fault(place, "expected an Identifier, found none")
            continue
        if (title, description) in seen:
            document.fault(place, f"{title[:80]} ({description[:60]}) stands twice")
        seen.add((title, description))
        entries = result.findall("Data/Entry")
        if len(entries) != 1:
            names = ", ".join(_text(entry, "Identifier")[:40] for entry in entries[:5])
            document.fault(place, f"expected the values of one kernel, found {len(entries)} entries: {names}")
            continue
        raw = _text(entries[0], "RawString") or _text(entries[0], "Value")
        samples = [document.number(part, place) for part in raw.split(":")] if raw else []
        if not raw:
            document.fault(place, f"{title[:80]}: expected a Value, found none: a run cut short?")
        proportion = _text(result, "Proportion")
        if proportion not in ("", *_DIRECTIONS):
            document.fault(place, f"expected the Proportion HIB or LIB, found {proportion[:20]!r}")
        version = re.sub(r"-\d+(?:\.\d+)*$", "", title.rpartition("/")[2])
        metric = Metric(
            f"phoronix-test-suite.{version}.result",
            tuple(sample for sample in samples if sample is not None),
            _text(result, "Scale")[:80],
            _DIRECTIONS.get(proportion, ""),
        )
        params = {"test": title, **({"description": description} if description else {})}
        tests.append(Test("phoronix-test-suite", params, (metric,) if metric.samples else ()))
    system = root.find("System")
    kernel = _KERNEL.search(_text(system, "Software")) if system is not None else None
    return Reading(
        tuple(tests),
        tool=f"Phoronix Test Suite {_text(root, 'Generated/TestClient')}".strip()[:80],
        kernel=kernel[1].rstrip(",")[:100] if kernel else "",
        machine=_text(system, "Identifier")[:200] if system is not None else "",
    )


def _text(element: ElementTree.Element, path: str) -> str:
    return " ".join((element.findtext(path) or "").split())


# --- plain CSV ---

_CSV_COLUMNS = ("metric", "unit", "better", "value")


def is_plain_csv(document: Document) -> bool:
    return tuple(_csv_header(document))[:4] == _CSV_COLUMNS


def _csv_header(document: Document) -> list[str]:
    return [name.strip().lower() for name in document.text.lstrip("\ufeff").partition("\n")[0].split(",")]


def read_plain_csv(document: Document) -> Reading:
    """A plain CSV, for any benchmark that prints numbers: `metric,unit,better,value` and perhaps `run`.

        metric,unit,better,value,run
        mybench.ops_per_sec,ops/s,higher,70412,1

    `better` is higher, lower or empty. Rows of one metric are samples; with a `run`, one value a run.
    """
    names = _csv_header(document)
    if names[4:] not in ([], ["run"]):
        document.fault("line 1", f"expected metric,unit,better,value[,run]; found {','.join(names)}")
    samples, suite = Samples(), ""
    units: dict[str, tuple[str, str]] = {}
    runs: set[tuple[str, str]] = set()
    for place, row in document.rows:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(names):
            document.fault(place, f"expected {len(names)} values, found {len(cells)}")
            continue
        metric, unit, better, text, *run = cells
        if not metric:
            document.fault(place, "expected the name of a metric, found none")
            continue
        if better not in (HIGHER, LOWER, ""):
            document.fault(place, f"expected better to be higher, lower or empty; found {better[:40]!r}")
        if units.setdefault(metric, (unit, better)) != (unit, better):
            what = "units" if units[metric][0] != unit else "directions"
            first, second = (units[metric][0], unit) if what == "units" else (units[metric][1], better)
            document.fault(place, f"mixed {what} of {metric[:80]}: {first or 'none'} and {second or 'none'}")
        if run and (metric, run[0]) in runs:
            document.fault(place, f"run {run[0][:40]} of {metric[:80]} stands twice")
        runs.update((metric, name) for name in run)
        suite = suite or metric.partition(".")[0] or "benchmark"
        samples.add(suite, {}, metric, document.number(text, place), unit, better)
    return Reading(tuple(samples.tests()))


# --- KTAP ---

_VERSION = re.compile(r"^\s*(?:K?TAP version (\d+))")
_PLAN = re.compile(r"^(\s*)1\.\.(\d+)")
_RESULT = re.compile(r"^(\s*)(not )?ok \d+([^#]*)(?:#(.*))?$")
_VALUE = r"([-+]?(?:\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf))\s*([A-Za-z%][\w%/.^]*)?"
_DIRECTIVE = re.compile(rf"^(?:time[=:]\s*)?{_VALUE}$", re.IGNORECASE)
_DIAGNOSTIC = re.compile(rf"^[\s#]*#\s*([A-Za-z][\w .()/:=-]{{0,80}}?)\s*[:=]\s*{_VALUE}$", re.IGNORECASE)
_NESTED = re.compile(r"[:=]\s+[\d.,]+\s*(?:\w+/\w+|[numk]?s|[num]?secs?|%)$", re.IGNORECASE)
_KTAP_UNITS = {
    "nsec": "ns",
    "nsecs": "ns",
    "usec": "us",
    "usecs": "us",
    "msec": "ms",
    "sec": "s",
    "secs": "s",
    "seconds": "s",
}
_NO_METRIC = re.compile(
    r"(?:totals?|pass|fail|skip|xfail|xpass|error|timeout|subtest|kselftest|cpus?|pid|seed)\b", re.IGNORECASE
)


def is_ktap(document: Document) -> bool:
    return any(_VERSION.match(line) for line in document.text[:3000].splitlines())


def read_ktap(document: Document) -> Reading:
    """KTAP of kernel selftests and KUnit, as far as it has numbers.

    The format is Documentation/dev-tools/ktap.rst. A number stands in the directive of a test (`ok 3 page_fault # 812
    ns`) or in a diagnostic line (`# throughput: 1034 MB/s`); a count without a unit is one too. Skipped tests are left
    out, a failed test or a plan with more tests than ran refuses the file.
    """
    samples = Samples()
    units: dict[str, str] = {}  # by metric
    plans: dict[int, tuple[int, int]] = {}  # by indentation: the line of the plan, and how many tests are still to come
    for number, line in document.lines:
        if match := _PLAN.match(line):
            plans[len(match[1])] = (number, int(match[2][:9]))
        elif match := _RESULT.match(line):
            indent, failed, described, directive = match.groups()
            name = described.strip().removeprefix("-").strip()
            if len(indent) in plans:
                line_of_plan, rest = plans[len(indent)]
                plans[len(indent)] = (line_of_plan, rest - 1)
            if failed:
                document.fault(f"line {number}", f"{name[:80] or 'a test'} failed: expected ok")
            elif value := _DIRECTIVE.match((directive or "").strip()):
                _add_ktap(document, samples, units, name or "test", value[1], value[2], f"line {number}")
        elif (match := _DIAGNOSTIC.match(line)) and not _NO_METRIC.match(match[1]):
            if re.search(r"[:=]", match[1]) and not _NESTED.search(line):
                continue  # a message of the test that has a number at its end, an address or a time
            _add_ktap(document, samples, units, match[1], match[2], match[3], f"line {number}")
    for line_of_plan, rest in plans.values():
        if rest > 0:
            document.fault(f"line {line_of_plan}", f"a run cut short: {rest} of the planned tests are missing")
    tests = samples.tests()
    if not tests and not document.faults:
        document.fault("", "expected tests with numbers, found none")
    return Reading(tuple(tests), tool="KTAP")


def _add_ktap(
    document: Document, samples: Samples, units: dict[str, str], name: str, text: str, unit: str | None, place: str
) -> None:
    name, unit = "_".join(re.split(r"[\s:=]+", name)), _KTAP_UNITS.get((unit or "").lower(), unit or "")
    value = document.number(text.replace(",", ""), place)
    if (before := units.setdefault(name, unit)) != unit:
        document.fault(place, f"mixed units of {name[:60]}: {before or 'none'} and {unit or 'none'}")
    samples.add("kselftest", {}, f"kselftest.{name}", value, unit)


# --- Bencher ---

_MEASURES = {
    "latency": ("ns", LOWER),
    "throughput": ("ops/s", HIGHER),
    "file-size": ("B", LOWER),
    "build-time": ("s", LOWER),
    "instructions": ("instructions", LOWER),
}


def is_bencher(document: Document) -> bool:
    value = document.json
    if not isinstance(value, dict) or not value:
        return False
    measures = [part for test in value.values() if isinstance(test, dict) for part in test.values()]
    return bool(measures) and any(isinstance(part, dict) and "value" in part for part in measures)


def read_bencher(document: Document) -> Reading:
    """Bencher's metric format (BMF): a JSON object of benchmarks, each with its measures and their values.

    `{"benchmark": {"latency": {"value": 88.2, "lower_value": 87.4, "upper_value": 89.0}}}`; a file is one run.
    Bencher's own measures have its units; of any other one neither unit nor direction is stated.
    """
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


FORMATS = (
    Format("hyperfine JSON", is_hyperfine, read_hyperfine),
    Format("Google Benchmark JSON", is_google_benchmark, read_google_benchmark),
    Format("pytest-benchmark JSON", is_pytest_benchmark, read_pytest_benchmark),
    Format("Criterion", is_criterion, read_criterion, by_line=True),
    Format("Phoronix composite.xml", is_phoronix, read_phoronix),
    Format("CSV with metric,unit,better,value", is_plain_csv, read_plain_csv),
    Format("KTAP with numbers", is_ktap, read_ktap),
    Format("Bencher Metric Format", is_bencher, read_bencher),
)
