"""What a stored result says beside its findings, for its mail: the range, the rechecks, the build. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.results.bisect_result import MeasurementData, Result
from bot.results.formats import lkp, perf_bisect_result
from tracker.domain.keys import scenario_key

BUILD = ("kconfig", "config_url", "compiler", "rootfs", "cmdline")
LKP_BUILD = ("kconfig", "compiler", "rootfs")  # a job's other fields mean other things


@dataclass(frozen=True, slots=True)
class ResultDetails:
    """Empty where a format has no such field. `good`, `bad`: the ends of the bisected range, as git describes them."""

    good: str = ""
    bad: str = ""
    bisect_steps: int = 0
    rechecks: tuple[tuple[str, str], ...] = ()  # (ref, state)
    test_text: str = ""
    test_url: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()  # (name, URL)
    build: Mapping[str, str] = field(default_factory=dict)  # by the names in BUILD


def details_of(format_name: str, payload: str) -> ResultDetails:
    """Return the details of a stored payload; only our own format and LKP's have any."""
    if format_name == perf_bisect_result.FORMAT:
        return _own(json.loads(payload))
    if format_name == lkp.FORMAT:
        return ResultDetails(build=_build(_part(_part(json.loads(payload), "culprit"), "job"), LKP_BUILD))
    return ResultDetails()


def remeasured(data: Result, sha: str, scenario: str, machine: str, metric: str) -> MeasurementData | None:
    """Return the measurement of a metric on a machine, from a result whose bad commit or culprit is `sha`; None if it
    was not measured there. `scenario`: its key.
    """
    if sha not in (data.bad.sha, data.culprit.sha if data.culprit else ""):
        return None  # a recheck without numbers
    for run in data.runs:
        if (scenario_key(run.suite, run.params), run.machine.id) == (scenario, machine):
            return next((each for each in run.measurements if each.metric == metric), None)
    return None


def _own(payload: Mapping[str, Any]) -> ResultDetails:
    bisect, test = _part(payload, "bisect"), _part(payload, "test")
    return ResultDetails(
        good=_name_of(payload.get("good")),
        bad=_name_of(payload.get("bad")),
        bisect_steps=len(bisect.get("steps", ())),
        rechecks=tuple((each["ref"], each["state"]) for each in bisect.get("rechecks", ())),
        test_text=test.get("description", ""),
        test_url=test.get("url", ""),
        artifacts=tuple((each["name"], each["url"]) for each in payload.get("artifacts", ()) if "url" in each),
        build=_build(_part(payload, "build"), BUILD),
    )


def _part(payload: Any, name: str) -> dict[str, Any]:
    part = payload.get(name) if isinstance(payload, dict) else None
    return part if isinstance(part, dict) else {}


def _build(fields: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    return {name: fields[name] for name in names if isinstance(fields.get(name), str)}


def _name_of(commit: Any) -> str:
    fields = commit if isinstance(commit, dict) else {}
    return str(fields.get("describe") or str(fields.get("sha", ""))[:10])
