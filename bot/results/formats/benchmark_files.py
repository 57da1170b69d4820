"""Files that benchmarks wrote on one kernel, against those of another one. Pure.

`FORMATS` has the tools whose files are read; a file is recognised by its content. The files of one side are runs of
the same tests: equal metrics of equal tests are samples of each other, in the order of the files. What only one side
has is left out. The commits, the machine and so on are in RunContext, which comes from the command line, a form
field or a job.yaml among the files.

A comparison with a culprit is stored as {"about": …, "parent": files, "culprit": files}, so that the very files are
read again when a reader gets better. One kernel's files make a perf-release-result/1, a point on the curves.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from bot.mail.addresses import parse_addresses
from bot.results.formats import checks, harnesses, io_benchmarks, kernel_benchmarks
from bot.results.formats import perf_release_result as release
from bot.results.formats.benchmark import MOST_METRICS, MOST_OBJECTS, Document, Format, Metric, Reading
from bot.results.formats.lkp import read_job
from bot.results.values import (
    CommitInfo,
    KernelResult,
    MachineInfo,
    MeasurementData,
    RejectedInput,
    Result,
    TestRun,
)
from tracker.domain import versions
from tracker.domain.metrics import direction_of, is_key, same_unit, unit_of
from tracker.domain.statistics import SampleSummary, summarise

FORMAT = "benchmark-files/1"

# The first that recognises a file reads it. To add one: a row in the table at the end of a chapter; see benchmark.py.
FORMATS: tuple[Format, ...] = (*io_benchmarks.FORMATS, *harnesses.FORMATS, *kernel_benchmarks.FORMATS)
MOST_FILES = 1_000  # of a side
MOST_BYTES = 64 << 20  # of all files
JOB = "job.yaml"


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was handed in. `name`: its path, as the submitter knows it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the files don't say: which commits or kernels, where, and of which test. Empty: not given.

    `commit`, `base`: the culprit and its parent; full shas, once they come to `compare`. `bisect_log`: the output of
    `git bisect log`, if the culprit was found by it.
    """

    commit: str = ""
    base: str = ""
    title: str = ""
    author: str = ""
    suite: str = ""
    machine: str = ""
    cpus: int | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    tree: str = ""
    branch: str = ""
    producer: str = ""
    bisect_log: str = ""


ABOUT = tuple(field.name for field in fields(RunContext))


# --- Reading files ---


def reader_of(document: Document) -> Format | None:
    """Return the format of a file; None if no tool's is known."""
    return next((reader for reader in FORMATS if reader.recognises(document)), None)


def read_file(file: File) -> Reading:
    """Return a file's tests. Raise RejectedInput with all of its faults, each with its place in the file."""
    document = Document(file.name, file.text)
    if not file.text.strip():
        raise RejectedInput(file.name, "expected the output of a benchmark, found an empty file")
    if file.text.count("{") + file.text.count("[") > MOST_OBJECTS:
        raise RejectedInput(file.name, f"expected at most {MOST_OBJECTS:,} objects and arrays, found more")
    reader = reader_of(document)
    if reader is None:
        if file.text.lstrip()[:1] in "{[" and document.json is None:
            document.check_json()
            document.check()
        if _FIO_TEXT.search(file.text[:20_000]):
            raise RejectedInput(file.name, "expected fio's JSON, found its text: fio --output-format=json")
        raise RejectedInput(file.name, f"expected one of {', '.join(reader.name for reader in FORMATS)}; found none")
    starts_so = file.text.lstrip()[:1] in "{[" or reader.name == "fio JSON"  # which may warn first
    if document.json is not None and starts_so and not reader.by_line:
        document.check_json(reader.repeats)
    reading = reader.read(document)
    if sum(len(test.metrics) for test in reading.tests) > MOST_METRICS:
        document.fault("", f"expected at most {MOST_METRICS:,} metrics, found more")
    if not document.faults and not any(test.metrics for test in reading.tests):
        document.fault("", f"expected numbers of {reader.name}, found none: a run cut short?")
    document.check()
    return reading


_Key = tuple[str, tuple[tuple[str, str], ...]]  # suite and parameters
_FIO_TEXT = re.compile(r"^\S{1,100}: \(g=\d+\): rw=|^3;fio-\d", re.M)  # its usual output, and its terse one
_LONG = 500  # characters that no two runs write alike


@dataclass(frozen=True, slots=True)
class _Side:
    """The runs of one kernel. `metrics`: by test, then by name; `tools`: with their versions. `contents`: by which
    the files are known again, the text of each with the tests that it holds; a name counts only where it names a test.
    """

    metrics: Mapping[_Key, Mapping[str, Metric]]
    tools: tuple[str, ...]
    machine: str
    cpus: int | None
    kernel: str
    contents: Sequence[tuple[str, Sequence[_Key]]]


def _read_side(files: Sequence[File], about: RunContext, faults: list[tuple[str, str]]) -> _Side:
    """Return the runs in these files; adds every fault of every file to `faults`."""
    if len(files) > MOST_FILES:
        faults.append((files[0].name, f"expected at most {MOST_FILES:,} files of a kernel, found {len(files):,}"))
        files = files[:1]
    metrics: dict[_Key, dict[str, Metric]] = {}
    named: dict[_Key, list[tuple[str, set[str]]]] = {}  # the metrics of each test by file
    readings = []
    contents: list[tuple[str, list[_Key]]] = []
    given: set[tuple[str, str]] = set()
    for file in files:
        # A short output may well be that of another run, too
        run = ("" if len(file.text) >= _LONG else file.name, file.text)
        if run in given:
            faults.append((file.name, "expected each run once, found this one twice"))
            continue
        given.add(run)
        try:
            reading = read_file(file)
        except RejectedInput as rejection:
            faults += rejection.faults or [(rejection.where, rejection.why)]
            continue
        readings.append(reading)
        contents.append((file.text, []))
        for test in reading.tests:
            suite = about.suite or test.suite
            params = tuple(sorted({**test.params, **about.params}.items()))
            contents[-1][1].append((suite, params))
            kept = metrics.setdefault((suite, params), {})
            names = {metric.name.removeprefix(f"{test.suite}.") for metric in test.metrics}
            named.setdefault((suite, params), []).append((file.name, names))
            for metric in test.metrics:
                name = metric.name.removeprefix(f"{test.suite}.")
                try:
                    kept[name] = _joined(kept.get(name), metric)
                except ValueError as error:
                    faults.append((file.name, f"mixed {error} of {metric.name[:80]} in the files of one kernel"))
    for (suite, _), by_file in named.items():
        faults += _missing(suite, by_file)
    return _Side(
        metrics,
        tuple(dict.fromkeys(reading.tool for reading in readings if reading.tool)),
        next((reading.machine for reading in readings if reading.machine), ""),
        next((reading.cpus for reading in readings if reading.cpus), None),
        next((reading.kernel for reading in readings if reading.kernel), ""),
        sorted(contents),
    )


def _missing(suite: str, by_file: Sequence[tuple[str, set[str]]]) -> Iterator[tuple[str, str]]:
    """Yield a fault for each file that lacks a metric that other runs of its test have: it was cut short.

    fio leaves out percentiles that it did not see, so of its metrics only those count that it is run for.
    """
    every = set().union(*(names for _, names in by_file))
    for file, names in by_file:
        lost = sorted(name for name in every - names if suite != "fio" or is_key(f"{suite}.{name}", suite))
        if lost:
            yield file, f"expected {', '.join(lost[:3])[:120]}, as the other runs have it; found none: a run cut short?"


def _joined(before: Metric | None, metric: Metric) -> Metric:
    """Return a metric with the samples of both. Raise ValueError if their units or directions differ."""
    if before is None:
        return metric
    if before.unit != metric.unit:
        raise ValueError(f"units ({before.unit or 'none'} and {metric.unit or 'none'})")
    if before.direction != metric.direction:
        raise ValueError("directions")
    samples = [*_samples(before), *_samples(metric)]
    return Metric(metric.name, tuple(samples), metric.unit, metric.direction)


def _samples(metric: Metric) -> tuple[float, ...]:
    """Return the samples; of runs that only have a summary, their mean."""
    return metric.samples or ((metric.summary.mean,) if metric.summary else ())


# --- A comparison with a culprit ---


def payload(about: RunContext, parent: Sequence[File], culprit: Sequence[File]) -> dict[str, Any]:
    """Return the JSON value that is stored, and that `parse` reads."""
    known = {name: value for name, value in asdict(about).items() if value}
    sides = (("parent", parent), ("culprit", culprit))
    return {
        "about": known,
        **{side: [{"name": file.name, "text": file.text} for file in files] for side, files in sides},
    }


def parse(value: Any, where: str) -> Result:
    """Return the Result of a payload. Raise RejectedInput with all faults of all files."""
    try:
        known = value["about"]
        about = RunContext(**{name: known[name] for name in ABOUT if name in known})
        parent, culprit = (
            [File(str(file["name"]), str(file["text"])) for file in value[side]] for side in ("parent", "culprit")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RejectedInput(where, f"expected about, parent and culprit; found {type(error).__name__}") from None
    return compare(about, parent, culprit, where)


PRODUCER = "files"  # of files that don't say who measured
_SAME = "both sides are the very same files: the culprit's may have been meant, or the parent's"


def compare(about: RunContext, parent: Sequence[File], culprit: Sequence[File], where: str) -> Result:
    """Return the result of a culprit's files against those of its parent.

    Raise RejectedInput with all faults: those of the files, and what is missing in `about`.
    """
    faults: list[tuple[str, str]] = []
    about, parent, culprit = _with_jobs(about, parent, culprit, faults)
    old, new = _read_side(parent, about, faults), _read_side(culprit, about, faults)
    for name, sha in (("commit", about.commit), ("base", about.base)):
        if not checks.SHA.match(sha):
            expected = "the culprit" if name == "commit" else "its parent"
            faults.append((name, f"expected the full sha of {expected}, found {sha[:60] or 'none'}"))
    author = next(iter(parse_addresses(about.author)), None) if about.author else None
    if about.author and (author is None or "@" not in author.email):
        faults.append(("author", f"expected Name <address>, found {about.author[:60]!r}"))
    machine = about.machine or new.machine or old.machine
    if not machine:
        faults.append(("machine", "expected the name of the machine, which these files don't have: --machine NAME"))
    pairs = _pairs(old, new)
    tests = _measured(old, new, pairs)
    if not faults and not tests:
        faults.append(
            (where, f"expected the same test on both kernels; {_told(old)} and {_told(new)} have none in common")
        )
    faults += _contradictions(old, new, pairs)
    if faults:
        raise RejectedInput(*faults[0], list(dict.fromkeys(faults)))
    of_machine = MachineInfo(machine, cpus=about.cpus or new.cpus or old.cpus)
    runs = tuple(TestRun(suite, dict(params), of_machine, measurements) for (suite, params), measurements in tests)
    stored = checks.canonical(payload(about, parent, culprit))
    return Result(
        producer=about.producer or PRODUCER,
        id=f"{about.base[:12]}..{about.commit[:12]} {_digest(asdict(about), old.contents, new.contents)[:20]}",
        created_at=None,
        outcome="conclusive",
        tree=about.tree or "unknown",
        branch=about.branch,
        tree_url="",
        good=CommitInfo(about.base),
        bad=CommitInfo(about.commit),
        culprit=CommitInfo(about.commit, about.title, author.name if author else "", author.email if author else ""),
        parent=CommitInfo(about.base),
        patch_message_id="",
        runs=runs,
        payload=stored,
        format=FORMAT,
        parent_is_stated=False,
        doubt=_SAME if old.contents == new.contents else _doubt(old, new, pairs),
        id_is_digest=True,
    )


def _digest(*values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8", "replace")).hexdigest()


def _with_jobs(
    about: RunContext, parent: Sequence[File], culprit: Sequence[File], faults: list[tuple[str, str]]
) -> tuple[RunContext, list[File], list[File]]:
    """Return `about` with what a job.yaml of a side adds, and the other files."""
    added: dict[str, Any] = {}
    for side, of_commit in ((parent, "base"), (culprit, "commit")):
        for file in side:
            if not is_job(file):
                continue
            try:
                job = read_job(file.text, file.name)
            except RejectedInput as rejection:
                faults.append((rejection.where, rejection.why))
                continue
            texts = {name: value for name, value in job.items() if isinstance(value, str)}
            added[of_commit] = texts.get("commit", "")
            added |= {"machine": texts.get("tbox_group", ""), "suite": texts.get("testcase", "")}
            added |= {"cpus": int(texts["nr_cpu"]) if texts.get("nr_cpu", "").isdecimal() else None}
            tree, _, branch = texts.get("branch", "").partition("/")
            added |= {"tree": tree, "branch": branch}
    known = asdict(about)
    merged = RunContext(**{name: known[name] or added.get(name) or known[name] for name in ABOUT})
    parent, culprit = ([file for file in side if not is_job(file)] for side in (parent, culprit))
    return merged, parent, culprit


def is_job(file: File) -> bool:
    return file.name.rpartition("/")[2] == JOB


def _told(side: _Side) -> str:
    tests = [
        f"{suite} {' '.join(f'{name}={value}' for name, value in params)}".strip() for suite, params in side.metrics
    ]
    return f"{tests[0][:80]!r}{f' and {len(tests) - 1} more' if len(tests) > 1 else ''}" if tests else "no test"


def _doubt(old: _Side, new: _Side, pairs: Sequence[tuple[_Key, _Key]]) -> str:
    """Return why the two sides may not be comparable, for an operator to check; "" if nothing speaks against it."""
    doubts = []
    parent, culprit = (", ".join(sorted(set(side.tools))) or "another tool" for side in (old, new))
    if parent != culprit:
        doubts.append(f"different tools: the parent was measured with {parent}, the culprit with {culprit}")
    elif len({re.split(r"[ -]v?\d", tool)[0] for tool in old.tools}) < len(set(old.tools)):
        doubts.append(f"different versions of a tool: each kernel was measured with {parent}")
    for (_, before), (_, after) in pairs:
        one, other = dict(before), dict(after)
        names = [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]
        if names and len(doubts) < 3:
            values = ", ".join(
                f"{name} {one.get(name, 'none')[:40]} and {other.get(name, 'none')[:40]}" for name in names
            )
            doubts.append(f"the kernels were measured with different parameters: {values}")
    return "; ".join(dict.fromkeys(doubts))


def _pairs(old: _Side, new: _Side) -> list[tuple[_Key, _Key]]:
    """Return the tests to compare: equal ones; else those of the same name, or the only ones, of a suite."""
    pairs = [(key, key) for key in new.metrics if key in old.metrics]
    if pairs:
        return pairs
    for suite in dict.fromkeys(suite for suite, _ in new.metrics):
        before = [key for key in old.metrics if key[0] == suite]
        after = [key for key in new.metrics if key[0] == suite]
        if len(before) == len(after) == 1:
            pairs.append((before[0], after[0]))
            continue
        by_name = [{dict(params).get("test"): (suite, params) for _, params in keys} for keys in (before, after)]
        if all(len(names) == len(keys) for names, keys in zip(by_name, (before, after), strict=True)):
            pairs += [(by_name[0][name], key) for name, key in by_name[1].items() if name in by_name[0]]
    return pairs


def _measured(
    old: _Side, new: _Side, pairs: Sequence[tuple[_Key, _Key]]
) -> list[tuple[_Key, tuple[MeasurementData, ...]]]:
    """Return the measurements of each pair of tests, under the parameters of the culprit's; that whose headline moved
    most stands first.
    """
    tests = []
    for before, after in pairs:
        suite, _ = after
        measured = [
            _measurement(f"{suite}.{name}", suite, old.metrics[before][name], metric)
            for name, metric in new.metrics[after].items()
            if name in old.metrics[before]
        ]
        if measured:
            tests.append((after, checks.with_roles(measured, suite)))
    return sorted(tests, key=lambda test: _importance(test[1]), reverse=True)


def _contradictions(old: _Side, new: _Side, pairs: Sequence[tuple[_Key, _Key]]) -> Iterator[tuple[str, str]]:
    """Yield a fault for each metric that the two sides give in different units, or with different directions."""
    for before, after in pairs:
        for name, metric in new.metrics[after].items():
            earlier = old.metrics[before].get(name)
            if earlier is None:
                continue
            if not same_unit(earlier.unit, metric.unit):
                yield name[:80], f"expected one unit, found {earlier.unit} (the parent) and {metric.unit} (the culprit)"
            if earlier.direction and metric.direction and earlier.direction != metric.direction:
                found = f"{earlier.direction} (the parent) and {metric.direction} (the culprit)"
                yield name[:80], f"expected one direction that is better, found {found}"


def _importance(measurements: Sequence[MeasurementData]) -> tuple[bool, float]:
    headline = next(measurement for measurement in measurements if measurement.role == "headline")
    old, new = headline.old.mean, headline.new.mean
    return is_key(headline.metric), abs(new - old) / abs(old) if old else 0.0


def _measurement(name: str, suite: str, old: Metric, new: Metric) -> MeasurementData:
    unit = new.unit or unit_of(name)
    direction = new.direction or direction_of(name, suite)
    return MeasurementData(name, unit, direction, "monitor", _summary(old), _summary(new), old.samples, new.samples)


def _summary(metric: Metric) -> SampleSummary:
    return checks.finite(summarise(metric.samples) if metric.samples else metric.summary or summarise(()), metric.name)


# --- One kernel ---


def of_kernel(
    name: str,
    about: RunContext,
    files: Sequence[File],
    now: str,
    where: str,
    taken: Callable[[str], Collection[str]] = lambda kernel: (),
) -> KernelResult:
    """Return the measurements of one kernel: a version (v6.12), a sha, or a name of one's own.

    `now`: ISO 8601, its place on the curves. `taken`: the marks of the files that are stored of a kernel; where some of
    these are among them, only the others count, so that a directory can be handed in again as it grows. Raise
    RejectedInput with all faults.
    """
    faults: list[tuple[str, str]] = []
    about, _, files = _with_jobs(about, (), files, faults)
    whole = _read_side(files, about, faults)
    name = name or whole.kernel
    said = asdict(about) | {"commit": "", "base": ""}  # it may have come as one side of two versions
    # As in `_read_side`, but for the folder that it is called from
    names = ["" if len(file.text) >= _LONG else "/".join(file.name.rsplit("/", 2)[-2:]) for file in files]
    marks = [_digest(said, name, file.text) for name, file in zip(names, files, strict=True)]
    before = taken(release.tag_of(name)) if name and not faults else ()
    fresh = [(file, mark) for file, mark in zip(files, marks, strict=True) if mark not in before]
    side = whole
    if 0 < len(fresh) < len(files):
        side, marks = _read_side([file for file, _ in fresh], about, faults), [mark for _, mark in fresh]
    machine = about.machine or whole.machine
    if not machine:
        faults.append(("machine", "expected the name of the machine, which these files don't have: --machine NAME"))
    if not name:
        faults.append(("kernel", "expected the version of the kernel, which these files don't have: --kernel VERSION"))
    tests = [test for key, metrics in side.metrics.items() if (test := _test_of(key, metrics, machine, about, whole))]
    if not tests and not faults:
        faults.append((where, "expected a metric of which it is known whether higher or lower is better; found none"))
    if faults:
        raise RejectedInput(*faults[0], list(dict.fromkeys(faults)))
    digest = _digest(name, said, side.contents)
    kernel = {"sha": name} if checks.SHA.match(name) else {"version": name}
    value = {
        "schema": release.FORMAT,
        "id": f"files-{digest[:24]}",
        "producer": {"name": about.producer or PRODUCER},
        "created_at": now,
        "kernel": kernel,
        "files": sorted(marks),
        **tests[0],
        **({"additional": tests[1:]} if tests[1:] else {}),
    }
    return replace(release.parse(value, where), id_is_digest=True, files_known=len(files) - len(marks))


def _test_of(
    key: _Key, metrics: Mapping[str, Metric], machine: str, about: RunContext, side: _Side
) -> dict[str, Any] | None:
    """Return a test in the form of perf-release-result/1; None without a metric of known direction."""
    suite, params = key
    measurements = []
    for short, metric in metrics.items():
        name = f"{suite}.{short}"
        direction = metric.direction or direction_of(name, suite)
        numbers: dict[str, Any] = {"samples": list(metric.samples)}
        if not metric.samples and metric.summary:
            summary = metric.summary
            numbers = {"mean": summary.mean, "n": summary.n}
            numbers |= {"stddev": summary.stddev} if summary.stddev is not None else {}
        is_known = direction in ("higher", "lower")
        measurements.append(
            {
                "metric": name,
                "unit": metric.unit or unit_of(name) or "1",
                "role": "kpi" if is_known else "monitor",
                **({"direction": direction} if is_known else {}),
                **numbers,
            }
        )
    keys = [measured for measured in measurements if measured["role"] == "kpi"]
    if not keys:
        return None
    headline = next((measured for measured in keys if is_key(measured["metric"], suite)), keys[0])
    headline["role"] = "headline"
    cpus = about.cpus or side.cpus
    return {
        "test": {"suite": suite, "params": dict(params)},
        "machine": {"id": machine, **({"cpus": cpus} if cpus else {})},
        "measurements": measurements,
    }


def is_version(name: str) -> bool:
    """Whether a name is a kernel's version (v6.12, 6.12-rc3), or what `uname -r` prints, rather than a commit."""
    is_release = versions.parse(name if name.startswith("v") else f"v{name}") is not None
    return is_release or bool(re.fullmatch(r"\d+\.\d+\.\d+[-+.~\w]*", name))
