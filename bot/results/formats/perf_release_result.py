"""`perf-release-result/1`: one kernel's measurements, as JSON or as a CSV of measured commits. Pure.

Checked JSON becomes a KernelResult. The schema is schemas/perf-release-result-1.schema.json; tests, machines and
samples are as in perf-bisect-result/1. A CSV has one run a row, and becomes one such JSON value per commit:

    commit,date,machine,suite,metric,value,unit,direction,param:threads
    0123…,2026-03-01T09:12:44Z,lab7-m1,will-it-scale,will-it-scale.per_process_ops,70412,,higher,16

`commit` (a sha, or a release's name), `date`, `machine`, `suite`, `metric`, `value` and `direction` (of better
values: higher or lower) are required, the others optional. Rows of one commit need not stand together. The result's
key is the digest of its rows, so the same file again adds nothing.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.results.formats import perf_bisect_result as perf
from bot.results.formats.checks import Schema, canonical, finite_number
from bot.results.values import KernelInfo, KernelMeasurement, KernelResult, RejectedInput, TestRun, ToolOutputInfo
from tracker.domain import versions
from tracker.domain.metrics import unit_of
from tracker.domain.text import scenario_key

# --- JSON ---

FORMAT = "perf-release-result/1"
SCHEMA = Schema("perf-release-result-1")
MOST_EVIDENCE = 4 << 20  # characters per result


def is_result(value: Any) -> bool:
    """Whether a JSON value names this schema."""
    return isinstance(value, dict) and value.get("schema") == FORMAT


def parse(value: Any, where: str) -> KernelResult:
    """Return the KernelResult of decoded JSON. Raise RejectedInput with the JSON pointer of the first fault."""
    SCHEMA.check(value, where)
    evidence = tuple(ToolOutputInfo(output["name"], output["text"]) for output in value.get("evidence", ()))
    for number, output in enumerate(evidence):
        if not output.text.strip():
            location = f"{where}, /evidence/{number}/text"
            raise RejectedInput(location, "expected the output of a tool, found an empty text")
    if sum(len(output.text) for output in evidence) > MOST_EVIDENCE:
        raise RejectedInput(f"{where}, /evidence", f"expected at most {MOST_EVIDENCE:,} characters in all, found more")
    kernel, committed = value["kernel"], value["kernel"].get("committed_at")
    name = kernel.get("version") or kernel["sha"]
    return KernelResult(
        producer=value["producer"]["name"],
        id=value["id"],
        created_at=perf.moment(value["created_at"], f"{where}, /created_at"),
        kernel=KernelInfo(
            name=tag_of(name),
            variant=kernel.get("variant", ""),
            describe=kernel.get("describe", ""),
            committed_at=perf.moment(committed, f"{where}, /kernel/committed_at") if committed else None,
        ),
        tests=tuple(_tests(value, where)),
        evidence=evidence,
        files=frozenset(value.get("files", ())),
        payload=canonical(value),
    )


def tag_of(name: str) -> str:
    """Return the tag of a version, as git has it: "v5.6" for "5.6", and "v6.12" for "6.12.0", as `uname -r` says it."""
    tag = name if name.startswith("v") else f"v{name}"
    return re.sub(r"\A(v(?:[3-9]|\d\d+)\.\d+)\.0(?=\Z|-rc)", r"\1", tag) if versions.parse(tag) else name


def _tests(value: Mapping[str, Any], where: str) -> Iterator[TestRun[KernelMeasurement]]:
    seen: set[tuple[str, str, str]] = set()
    for test, pointer in perf.tests_of(value):
        suite, params, measured = test["test"]["suite"], perf.params_of(test["test"]), []
        for number, measurement in enumerate(test["measurements"]):
            at, metric = f"{where}, {pointer}/measurements/{number}", measurement["metric"]
            side, samples = perf.side_of(measurement, at)
            key = (scenario_key(suite, params), test["machine"]["id"], metric)
            if key in seen:
                raise RejectedInput(at, f"{metric[:80]} is given twice for this test")
            seen.add(key)
            unit, direction = measurement.get("unit", ""), measurement.get("direction", "unknown")
            measured.append(KernelMeasurement(metric, unit, direction, measurement["role"], side, samples))
        yield TestRun(suite, params, perf.machine_of(test["machine"]), tuple(measured))


# --- CSV of measured commits ---

REQUIRED = ("commit", "date", "machine", "suite", "metric", "value", "direction")
OPTIONAL = ("unit", "producer")
PARAM = "param:"
MOST_ROWS = 1_000_000
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
Row = Mapping[str, str]


def is_csv(head: str) -> bool:
    """Whether a text begins with a header that names the required columns."""
    columns = head.partition("\n")[0].strip().lower().split(",")
    return all(name in columns for name in REQUIRED)


def parse_csv(text: str, where: str) -> list[dict[str, Any]]:
    """Return one value per commit, in the order of their first rows. Raise RejectedInput with the line of a fault."""
    rows = list(_rows(text, where))
    if not rows:
        raise RejectedInput(where, "expected at least one row, found only the header")
    commits: dict[str, list[tuple[int, Row]]] = {}
    for line, row in rows:
        name = row["commit"].lower()
        commits.setdefault(name if _SHA.fullmatch(name) else row["commit"], []).append((line, row))
    return [_value(commit, entries, where) for commit, entries in commits.items()]


def _rows(text: str, where: str) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
        unknown = [name for name in names if name not in (*REQUIRED, *OPTIONAL) and not name.startswith(PARAM)]
        if unknown or len(set(names)) < len(names) or not set(REQUIRED) <= set(names):
            message = f"expected the columns {', '.join(REQUIRED)}; found {', '.join(names)}"
            raise RejectedInput(f"{where}, line 1", message[:300])
        reader.fieldnames = names
        for row in reader:
            if reader.line_num > MOST_ROWS:
                raise RejectedInput(where, f"expected at most {MOST_ROWS:,} rows; split the file")
            if None in row or None in row.values():
                raise RejectedInput(f"{where}, line {reader.line_num}", f"expected {len(names)} values")
            cells = {name: cell.strip() for name, cell in row.items()}
            missing = next((name for name in REQUIRED if not cells[name]), None)
            if missing:
                raise RejectedInput(f"{where}, line {reader.line_num}", f"expected a value for {missing}, found none")
            yield reader.line_num, cells
    except csv.Error as error:
        raise RejectedInput(f"{where}, line {reader.line_num}", f"expected CSV: {error}") from None


def _value(commit: str, rows: Sequence[tuple[int, Row]], where: str) -> dict[str, Any]:
    """Return the result of one commit: a test per machine, suite and parameters."""
    tests: dict[tuple[str, ...], dict[str, Any]] = {}
    for line, row in rows:
        params = {name.removeprefix(PARAM): cell for name, cell in row.items() if name.startswith(PARAM) and cell}
        key = (row["machine"], row["suite"], *(f"{name}={cell}" for name, cell in sorted(params.items())))
        test = tests.setdefault(
            key,
            {"test": {"suite": row["suite"], "params": params}, "machine": {"id": row["machine"]}, "measurements": {}},
        )
        try:
            value = finite_number(row["value"])
        except ValueError:
            raise RejectedInput(f"{where}, line {line}", f"expected a number, found {row['value'][:40]!r}") from None
        measurement: dict[str, Any] = {
            "metric": row["metric"],
            "unit": row.get("unit") or unit_of(row["metric"]) or "1",
            "direction": row["direction"].lower(),
            "role": "kpi" if test["measurements"] else "headline",
            "samples": [],
        }
        test["measurements"].setdefault(row["metric"], measurement)["samples"].append(value)
    every = [{**test, "measurements": list(test["measurements"].values())} for test in tests.values()]
    first, content = rows[0][1], "\n".join("\t".join(row.values()) for _, row in rows)
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
    kernel = {"sha": commit} if _SHA.fullmatch(commit) else {"version": commit}
    return {
        "schema": FORMAT,
        "id": f"csv-{digest[:24]}",
        "producer": {"name": first.get("producer") or "csv"},
        "created_at": first["date"],
        "kernel": {**kernel, "committed_at": first["date"]},
        **every[0],
        **({"additional": every[1:]} if every[1:] else {}),
    }
