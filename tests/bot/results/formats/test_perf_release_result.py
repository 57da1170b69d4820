"""`perf-release-result/1`: what is accepted, what is rejected with which message, and what is stored."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import perf_release_result
from bot.results.recognise import read_bytes
from bot.results.values import KernelResult, RejectedInput
from tests.support.rows import token
from tracker.models import BisectResult, Kernel, Measurement, ReleaseResult, ToolOutput

TEST = {"suite": "vm-scan", "params": {"nr_task": "50%"}}
MACHINE = {"id": "lab7-m1", "cpus": 64, "cpu_model": "Example 9000", "codename": "Example Lake"}
MEASURED = [
    {"metric": "vm-scan.ops_per_sec", "unit": "ops/s", "direction": "higher", "role": "headline", "samples": [10, 12]},
    {"metric": "vmstat.system.cs", "role": "monitor", "mean": 500.5, "n": 2, "stddev": 3},
]
RESULT: dict[str, Any] = {
    "schema": "perf-release-result/1",
    "id": "v6.12-vm-scan",
    "producer": {"name": "lab"},
    "created_at": "2026-11-20T08:00:00Z",
    "kernel": {"version": "v6.12"},
    "test": TEST,
    "machine": MACHINE,
    "measurements": MEASURED,
}
VMSTAT = " r b swpd free buff cache si so bi bo in cs us sy id wa st\n 1 0 0 9 9 9 0 0 0 0 7 5 1 2 97 0 0\n"


def result_data(**changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RESULT), **changed}


def take(tmp_path: Path, *results: dict[str, Any]) -> str:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    out = io.StringIO()
    call_command("ingest", str(path), stdout=out, stderr=out)
    return out.getvalue()


def test_a_kernel_and_what_it_did(db: None, tmp_path: Path) -> None:
    assert "new: " in take(tmp_path, result_data(evidence=[{"name": "vmstat.txt", "text": VMSTAT}]))
    headline, monitor = Measurement.objects.order_by("pk").select_related("kernel", "metric", "machine", "scenario")
    assert str(headline.kernel) == "v6.12"
    assert (headline.mean, headline.stddev, headline.runs, headline.samples) == (11.0, 1.0, 2, [10.0, 12.0])
    assert (headline.metric.direction, headline.metric.unit, headline.role) == ("higher", "ops/s", "headline")
    assert (str(headline.scenario), headline.machine.codename) == ("vm-scan, nr_task=50%", "Example Lake")
    assert (monitor.mean, monitor.stddev, monitor.runs, monitor.samples) == (500.5, 3.0, 2, [])
    evidence = ToolOutput.objects.get()
    assert (evidence.kind, evidence.text, evidence.submitted_by) == ("vmstat", VMSTAT, "lab")
    assert (evidence.machine, evidence.scenario) == (headline.machine, headline.scenario)
    assert json.loads(ReleaseResult.objects.get().payload)["id"] == RESULT["id"]  # raw first
    assert not BisectResult.objects.exists()


def test_it_comes_in_once(db: None, tmp_path: Path) -> None:
    take(tmp_path, result_data())
    assert "1 duplicate" in take(tmp_path, result_data())
    same = result_data(measurements=[{**MEASURED[0], "samples": [10.0, 12.0]}, MEASURED[1]])
    assert "1 duplicate" in take(tmp_path, same)  # the same numbers, written otherwise
    with pytest.raises(CommandError):
        take(tmp_path, result_data(machine={"id": "lab7-m2", "cpus": 64}))
    assert Measurement.objects.count() == 2
    take(tmp_path, result_data(id="another run"))
    assert Measurement.objects.count() == 4
    assert Kernel.objects.count() == 1


def test_beside_bisect_results_of_one_file(db: None, tmp_path: Path) -> None:
    bisect = json.loads((Path(__file__).parents[4] / "fixtures/results/01-mm-vmscan.json").read_text())
    output = take(tmp_path, result_data(), bisect, result_data(id="two", kernel={"version": "6.12", "variant": "2M"}))
    assert "3 new" in output
    assert output.index("v6.12-vm-scan") < output.index(bisect["id"]) < output.index("two")  # in the order of the input
    assert BisectResult.objects.count() == 1
    assert sorted(map(str, Kernel.objects.all())) == ["v6.12", "v6.12/2M"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"kernel": {}}, "/kernel"),
        ({"kernel": {"version": "v6.12/rc1"}}, "/kernel/version"),
        ({"kernel": {"sha": "abc"}}, "/kernel/sha"),
        ({"measurements": []}, "/measurements"),
        ({"measurements": [MEASURED[1]]}, "/measurements"),  # no headline
        ({"measurements": [MEASURED[0], MEASURED[0]]}, "/measurements"),  # two of them
        ({"measurements": [MEASURED[0], {**MEASURED[0], "role": "kpi"}]}, "is given twice for this test"),
        ({"measurements": [{**MEASURED[0], "samples": []}]}, "/measurements/0/samples"),
        ({"measurements": [{k: v for k, v in MEASURED[0].items() if k != "direction"}]}, "/measurements/0"),
        ({"created_at": "yesterday"}, "/created_at"),
        ({"good": {"sha": "a" * 40}}, "good"),
        ({"evidence": [{"name": "a", "text": "x" * (5 << 20)}]}, "/evidence"),
        ({"evidence": [{"name": "a", "text": " "}]}, "/evidence/0/text"),
        ({"test": {"suite": "s" * 501, "params": {}}}, "suite: expected at most 500 characters"),
        ({"id": "x\u0085y"}, "id: expected a single line"),
    ],
)
def test_what_is_refused_and_where(changed: dict[str, Any], expected: str) -> None:
    (answer,) = read_bytes(json.dumps(result_data(**changed)).encode(), "in")
    assert answer.result is None
    assert expected in str(answer.rejection)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*RESULT, *MEASURED[0]]), inner),
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(list(RESULT)), junk))
def test_junk_is_refused_and_nothing_else(changed: dict[str, Any]) -> None:
    try:
        parsed = perf_release_result.parse({**result_data(), **changed}, "in")
    except RejectedInput as error:
        reason = str(error)
        assert reason
    else:
        assert isinstance(parsed, KernelResult)


def test_over_the_network(db: None, client: Client, settings: Any, tmp_path: Path) -> None:
    settings.PERFWORK_DROP = tmp_path
    headers = {"Authorization": f"Bearer {token()}"}

    def post(body: dict[str, Any]) -> Any:
        return client.post("/api/v1/results", json.dumps(body), content_type="application/json", headers=headers)

    answer = post(result_data())
    assert (answer.status_code, answer.json()["kernel"]) == (202, "v6.12")
    (shown,) = client.get(answer["Location"]).json()["measurements"][:1]
    assert (shown["metric"], shown["mean"], shown["samples"]) == ("vm-scan.ops_per_sec", 11.0, [10.0, 12.0])
    assert post(result_data()).status_code == 200
    other = post(result_data(kernel={"version": "v6.13"}))
    assert (other.status_code, other.json()["faults"]) == (409, [{"pointer": "/kernel/version", "why": "differs"}])


def test_a_kernel_takes_as_many_results_as_a_lab_has(db: None, tmp_path: Path) -> None:
    files = [{"name": f"{number}.txt", "text": VMSTAT} for number in range(50)]
    assert "5 new" in take(tmp_path, *(result_data(id=str(number), evidence=files) for number in range(5)))
    assert ToolOutput.objects.count() == 50  # the same text of the same place is kept once
    files = [{"name": f"{number}.txt", "text": VMSTAT + str(number)} for number in range(250)]
    assert "5 new" in take(tmp_path, *(result_data(id=f"n{n}", evidence=files[50 * n : 50 * n + 50]) for n in range(5)))
    assert ToolOutput.objects.count() == 300
