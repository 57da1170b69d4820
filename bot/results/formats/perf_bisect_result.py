"""`perf-bisect-result/1`: one JSON object per result. Text → checked JSON → Result. Pure.

The schema is schemas/perf-bisect-result-1.schema.json; what it can't express (finite numbers, unique keys, a size
limit) is checked as the text is decoded (checks.py). Every error names the line and the JSON pointer.
perf_release_result.py shares the parts that both formats have.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bot.results.formats import checks
from bot.results.formats.checks import Schema, canonical
from bot.results.values import CommitInfo, MachineInfo, MeasurementData, RecheckData, RejectedInput, Result, TestRun
from tracker.domain.statistics import SampleSummary

FORMAT = "perf-bisect-result/1"
SCHEMA = Schema("perf-bisect-result-1")


def parse(value: Any, where: str) -> Result:
    """Return the Result of decoded JSON. Raise RejectedInput with the JSON pointer of the first fault."""
    SCHEMA.check(value, where)
    return Result(
        payload=canonical(value),
        producer=value["producer"]["name"],
        id=value["id"],
        created_at=moment(value["created_at"], f"{where}, /created_at"),
        outcome=value["outcome"],
        tree=value["tree"]["name"],
        branch=value["tree"]["branch"],
        tree_url=value["tree"].get("url", ""),
        good=_commit(value["good"], f"{where}, /good"),
        bad=_commit(value["bad"], f"{where}, /bad"),
        culprit=_commit(value["first_bad"], f"{where}, /first_bad") if "first_bad" in value else None,
        parent=_commit(value["parent"], f"{where}, /parent") if "parent" in value else None,
        patch_message_id=value.get("patch", {}).get("message_id", "").strip().strip("<>"),
        runs=tuple(_runs(value, where)),
        format=FORMAT,
        rechecks=tuple(
            RecheckData(recheck["ref"], recheck["sha"], recheck["state"])
            for recheck in value.get("bisect", {}).get("rechecks", ())
        ),
    )


def tests_of(value: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """Return the main test of a result and its additional ones, each with its JSON pointer."""
    return [(value, ""), *((test, f"/additional/{n}") for n, test in enumerate(value.get("additional", ())))]


def machine_of(machine: Mapping[str, Any]) -> MachineInfo:
    """Return the machine. JSON Schema accepts 64.0 as an integer, so floats are converted."""
    fields: dict[str, Any] = {key: int(value) if isinstance(value, float) else value for key, value in machine.items()}
    return MachineInfo(**{key: value for key, value in fields.items() if key != "microcode"})


def params_of(test: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a test. Its name within the suite becomes `test`, unless a parameter is called so."""
    params: dict[str, str] = dict(test["params"])
    if "name" in test:
        params.setdefault("test", test["name"])
    return params


def _commit(commit: Mapping[str, Any], where: str) -> CommitInfo:
    author = commit.get("author", {})
    return CommitInfo(
        sha=commit["sha"],
        title=commit.get("subject", ""),
        author_name=author.get("name", ""),
        author_email=author.get("email", ""),
        date=moment(commit["date"], f"{where}/date") if "date" in commit else None,
        describe=commit.get("describe", ""),
        trailers=tuple((trailer["tag"], trailer["value"]) for trailer in commit.get("trailers", ())),
        is_merge=commit.get("is_merge", False),
    )


def _runs(value: Mapping[str, Any], where: str) -> Iterator[TestRun[MeasurementData]]:
    """Yield the tests of a result. A metric may stand twice in one, as headline and as monitor, with the same numbers;
    of a test that stands there twice the first counts.
    """
    for run, pointer in tests_of(value):
        told: dict[str, MeasurementData] = {}
        measured = []
        for number, measurement in enumerate(run["measurements"]):
            at = f"{where}, {pointer}/measurements/{number}"
            data = _measurement(measurement, at)
            first = told.setdefault(data.metric, data)
            if (first.old, first.new) != (data.old, data.new):
                raise RejectedInput(at, f"{data.metric[:80]} is given twice for this test, with other numbers")
            measured.append(data)
        yield TestRun(run["test"]["suite"], params_of(run["test"]), machine_of(run["machine"]), tuple(measured))


def _measurement(value: Mapping[str, Any], where: str) -> MeasurementData:
    old, old_samples = side_of(value["good"], f"{where}/good")
    new, new_samples = side_of(value["bad"], f"{where}/bad")
    direction = value.get("direction", "unknown")
    return MeasurementData(
        value["metric"], value.get("unit", ""), direction, value["role"], old, new, old_samples, new_samples
    )


def side_of(side: Mapping[str, Any], where: str) -> tuple[SampleSummary, tuple[float, ...]]:
    """Return one side and its samples; the samples are empty if only a summary is given."""
    samples = side.get("samples")
    try:
        if samples is None:
            spread = float(side["stddev"]) if "stddev" in side else None
            return checks.finite(SampleSummary(float(side["mean"]), spread, int(side["n"])), where), ()
        return checks.summary(samples, f"{where}/samples")
    except OverflowError:
        raise RejectedInput(where, "expected numbers up to 1e308, found a larger one") from None


def moment(text: str, where: str) -> datetime:
    """Return an RFC 3339 time in UTC; a time without an offset is taken as UTC."""
    try:
        if "T" not in text.upper():
            raise ValueError(text)
        return checks.utc(text)
    except ValueError:
        raise RejectedInput(where, f"expected a date and time (RFC 3339), found {text[:40]!r}") from None
