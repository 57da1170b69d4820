"""`perf-release-result/1`: the measurements of one kernel. Checked JSON → KernelResult. Pure.

The schema is schemas/perf-release-result-1.schema.json; tests, machines and samples are as in perf-bisect-result/1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.results.errors import RejectedInput
from bot.results.formats import perf_bisect_result as perf
from bot.results.formats.schema import Schema, canonical
from bot.results.kernel_result import KernelInfo, KernelMeasurement, KernelResult, ScenarioInfo, ToolOutputInfo
from tracker.domain import versions
from tracker.domain.keys import scenario_key

FORMAT = "perf-release-result/1"
SCHEMA = Schema("perf-release-result-1")
MOST_EVIDENCE = 4 << 20  # characters per result


def is_result(value: Any) -> bool:
    """Whether a JSON value names this schema."""
    return isinstance(value, dict) and value.get("schema") == FORMAT


def parse(value: Any, where: str) -> KernelResult:
    """Return the KernelResult of decoded JSON. Raise RejectedInput with the JSON pointer of the first fault."""
    SCHEMA.check(value, where)
    evidence = tuple(ToolOutputInfo(each["name"], each["text"]) for each in value.get("evidence", ()))
    for number, each in enumerate(evidence):
        if not each.text.strip():
            raise RejectedInput(
                f"{where}, /evidence/{number}/text", "expected the output of a tool, found an empty text"
            )
    if sum(len(each.text) for each in evidence) > MOST_EVIDENCE:
        raise RejectedInput(f"{where}, /evidence", f"expected at most {MOST_EVIDENCE:,} characters in all, found more")
    return KernelResult(
        producer=value["producer"]["name"],
        id=value["id"],
        created_at=perf.moment(value["created_at"], f"{where}, /created_at"),
        kernel=_kernel(value["kernel"], where),
        tests=tuple(_tests(value, where)),
        evidence=evidence,
        payload=canonical(value),
    )


def _kernel(kernel: Mapping[str, Any], where: str) -> KernelInfo:
    """Return the kernel under its tag name: "v5.6" for "5.6" as well."""
    name = kernel.get("version") or kernel["sha"]
    name = f"v{name}" if versions.parse(f"v{name}") else name
    committed = kernel.get("committed_at")
    committed_at = perf.moment(committed, f"{where}, /kernel/committed_at") if committed else None
    return KernelInfo(name, kernel.get("variant", ""), kernel.get("describe", ""), committed_at)


def _tests(value: Mapping[str, Any], where: str) -> Iterator[ScenarioInfo]:
    seen: set[tuple[str, str, str]] = set()
    for test, pointer in perf.tests_of(value):
        suite, params, measured = test["test"]["suite"], perf.params_of(test["test"]), []
        for number, each in enumerate(test["measurements"]):
            at = f"{where}, {pointer}/measurements/{number}"
            side, samples = perf.side_of(each, at)
            key = (scenario_key(suite, params), test["machine"]["id"], each["metric"])
            if key in seen:
                raise RejectedInput(at, f"{each['metric'][:80]} is given twice for this test")
            seen.add(key)
            direction = each.get("direction", "unknown")
            measured.append(
                KernelMeasurement(each["metric"], each.get("unit", ""), direction, each["role"], side, samples)
            )
        yield ScenarioInfo(suite, params, perf.machine_of(test["machine"]), tuple(measured))
