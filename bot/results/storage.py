"""Results into the database: each stored once, whole, with what follows from it; and read again.

A bisect result is stored with its findings, its report and its events (findings.py), a release result with its
measurements and tool output. Producer and id are the key: the same content again is a duplicate, other content is a
conflict. Many results share a few queries and a transaction; if the database rejects one of them, they are stored one
by one. Stored results and tool output can be read again with today's code (DESIGN rule 1), each in a transaction of
its own; what is now rejected stays as it was.

Afterwards, without slowing the intake down, the samples of every commit or kernel that a result measured are put on
curves.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TypeVar

from django.db import DataError, IntegrityError, OperationalError, transaction
from django.db.models import QuerySet

from bot.git.inspection import CommitInspection
from bot.results.findings import store_new
from bot.results.formats import perf_bisect_result, perf_release_result
from bot.results.formats.checks import pointer
from bot.results.grading import FIELDS, GradedMeasurement, NewFinding, fetch_catalog, fetch_test_catalog, grade
from bot.results.recognise import reread
from bot.results.values import Conflict, KernelResult, RejectedInput, Result, checked_parse
from tracker.domain.curves import CurvePoint
from tracker.domain.events import InvalidInput
from tracker.domain.metrics import same_unit
from tracker.domain.text import scenario_key
from tracker.domain.tool_output import kind_of
from tracker.models import (
    BisectResult,
    Finding,
    Kernel,
    Machine,
    Measurement,
    Metric,
    ReleaseResult,
    Report,
    Scenario,
    ToolOutput,
)
from tracker.services import curves, database
from tracker.services.catalog import attach
from tracker.services.corrections import regrade, update_reports
from tracker.services.curve_changes import refresh_stale
from tracker.services.database import Lock

log = logging.getLogger(__name__)

# --- Bisect results ---

_TRIES = 4
Answer = TypeVar("Answer")


class Taken(StrEnum):
    """The outcome for a result that was not rejected."""

    NEW = "new"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome for a result: its row, and the report it belongs to, if any."""

    taken: Taken
    row: BisectResult
    report: Report | None

    @property
    def summary(self) -> str:
        """The receipt as one line: the report, why it is held, and what the result says of other reports."""
        report = f"report {self.report.culprit.sha10}" if self.report else f"{self.row.outcome}, no report"
        held = f"held: {self.row.held.replace(chr(10), '; ')}" if self.row.held else ""
        return "; ".join(part for part in (report, held, self.row.note) if part)


def take_all(
    results: Sequence[Result], now: datetime, seen: Mapping[str, CommitInspection]
) -> list[Receipt | RejectedInput]:
    """Store results in one transaction, or one by one if the database rejects one of them.

    `seen`: the commits named in the results, as git trees have them. Answers are in the order of the results. The same
    content again is a duplicate, other content under its key a Conflict.
    """
    try:
        return _tried(partial(_take, results, now, seen))
    except (DataError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
        if len(results) == 1:
            return [_not_storable(error)]
    except (IntegrityError, OperationalError):
        if len(results) == 1:
            raise
    return [answer for result in results for answer in take_all([result], now, seen)]


def _tried(store: Callable[[], Answer]) -> Answer:
    """Store in a transaction; again if another worker created the same row at the same time, or the two deadlocked."""
    for attempt in range(1, _TRIES + 1):
        try:
            with transaction.atomic():
                return store()
        except (IntegrityError, OperationalError) as error:
            log.info("attempt %d failed: %s", attempt, error)
            if attempt == _TRIES:
                raise
    raise AssertionError("never reached")


def _not_storable(error: Exception) -> RejectedInput:
    return RejectedInput("", f"the database can't store it: {(str(error) or type(error).__name__).splitlines()[0]}")


def _take(
    results: Sequence[Result], now: datetime, seen: Mapping[str, CommitInspection]
) -> list[Receipt | RejectedInput]:
    database.take(Lock.RESULT_INTAKE)  # two batches at once would wait for each other's rows
    digests = [hashlib.sha256(result.payload.encode()).hexdigest() for result in results]
    stored = BisectResult.objects.filter(
        producer__in={result.producer for result in results}, external_id__in={result.id for result in results}
    )
    rows = stored.select_related("report__culprit").defer("payload", "files", "report__authors", "report__recipients")
    by_key = {(row.producer, row.external_id): row for row in rows}
    fresh: dict[tuple[str, str], tuple[Result, BisectResult]] = {}
    for result, digest in zip(results, digests, strict=True):
        if result.key not in by_key:
            by_key[result.key] = BisectResult(
                producer=result.producer,
                external_id=result.id,
                digest=digest,
                format=result.format,
                payload=result.payload,
                outcome=result.outcome,
                bad_sha=result.bad.sha,
                note=result.note,
                files=dict(result.files),
                created_at=result.created_at or now,
                received_at=now,
            )
            fresh[result.key] = (result, by_key[result.key])
    store_new([result for result, _ in fresh.values()], [row for _, row in fresh.values()], now, seen)
    answers: list[Receipt | RejectedInput] = []
    for result, digest in zip(results, digests, strict=True):
        row = by_key[result.key]
        is_new = fresh.pop(result.key, None) is not None
        conflict = None if result.id_is_digest else _conflict(row, result, digest)
        answers.append(conflict or Receipt(Taken.NEW if is_new else Taken.DUPLICATE, row, row.report))
    return answers


def _conflict(row: BisectResult | ReleaseResult, result: Result | KernelResult, digest: str) -> Conflict | None:
    """Return why a result is rejected whose key is known already, with other content; None if that is the same."""
    paths = changed_paths(json.loads(row.payload), json.loads(result.payload)) if row.digest != digest else []
    if not paths:
        return None
    listed = ", ".join(path or "the whole document" for path in paths[:5])
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    why = f"{row} exists with different content: differs at {listed}{more}; use another id"
    return Conflict("", why, [(path, "differs") for path in paths])


_MISSING = object()


def changed_paths(old: object, new: object, at: str = "", depth: int = 0) -> list[str]:
    """Return the JSON pointers (RFC 6901) where two values differ, to a bounded depth; "" is the whole value."""
    if depth > 20:
        return [] if old == new else [at]
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            path
            for key in keys
            for path in changed_paths(old.get(key, _MISSING), new.get(key, _MISSING), at + pointer([key]), depth + 1)
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [path for number, (a, b) in pairs for path in changed_paths(a, b, f"{at}/{number}", depth + 1)]
    return [] if old == new else [at]


# --- Release results ---


@dataclass(frozen=True, slots=True)
class ReleaseReceipt:
    """The outcome for a release result: its row."""

    taken: Taken
    row: ReleaseResult
    left_out: tuple[str, ...] = ()  # what was not kept of it, each with the reason

    @property
    def summary(self) -> str:
        return "; ".join([f"{self.row.kernel}, measured", *self.left_out])


def take_kernel_result(result: KernelResult, now: datetime) -> ReleaseReceipt | RejectedInput:
    """Store the measurements of a kernel and its evidence, once; other content under its key is a Conflict."""
    try:
        return _tried(partial(_take_kernel_result, result, now))
    except (DataError, ArithmeticError, ValueError, IntegrityError, OperationalError) as error:
        return _not_storable(error)


def _take_kernel_result(result: KernelResult, now: datetime) -> ReleaseReceipt | RejectedInput:
    digest = hashlib.sha256(result.payload.encode()).hexdigest()
    rows = ReleaseResult.objects.filter(producer=result.producer, external_id=result.id)
    if row := rows.select_related("kernel").first():
        conflict = None if result.id_is_digest else _conflict(row, result, digest)
        return conflict or ReleaseReceipt(Taken.DUPLICATE, row)
    if result.files:
        database.take(Lock.RESULT_INTAKE)  # else two that hold the same file could come in at once
        before = files_taken(result.producer, result.kernel.name)
        if before.keys() >= result.files:  # some of the files of another result
            return ReleaseReceipt(Taken.DUPLICATE, ReleaseResult.objects.get(pk=before[min(result.files)]))
        if not before.keys().isdisjoint(result.files):
            return RejectedInput("files", "some of these were stored meanwhile, by somebody else: hand them in again")
    if other := _other_unit(result):
        return other
    kernel, _ = Kernel.objects.get_or_create(
        name=result.kernel.name,
        variant=result.kernel.variant,
        defaults={"measured_at": result.created_at, "describe": result.kernel.describe},
    )
    row = ReleaseResult.objects.create(
        producer=result.producer,
        external_id=result.id,
        digest=digest,
        payload=result.payload,
        kernel=kernel,
        created_at=result.created_at,
        received_at=now,
    )
    store_measurements(result, row)
    # The machine and scenario of the first test, where the evidence was taken
    first = result.tests[0]
    key = scenario_key(first.suite, first.params)
    machine, scenario = Machine.objects.get(name=first.machine.id), Scenario.objects.get(key=key)
    place = {"kernel": kernel, "result": row, "machine": machine, "scenario": scenario}
    known = result.files_known
    left_out = [f"{known} of the files {'is' if known == 1 else 'are'} stored already"] if known else []
    for file in result.evidence:
        try:
            attach(file.name, file.text, result.producer, now, **place)
        except InvalidInput as error:  # the measurements are kept all the same
            left_out.append(str(error))
    return ReleaseReceipt(Taken.NEW, row, tuple(left_out))


def files_taken(producer: str, kernel: str) -> dict[str, int]:
    """Return the marks of the benchmark files that are stored of a kernel, each with the key of its result."""
    rows = ReleaseResult.objects.filter(producer=producer, kernel__name=kernel, kernel__variant="").order_by("pk")
    payloads = rows.values_list("pk", "payload").iterator()
    return {mark: pk for pk, payload in payloads for mark in json.loads(payload).get("files", ())}


def _other_unit(result: KernelResult) -> RejectedInput | None:
    """Return why measurements are refused that are in another unit than those of the same metric, which a comparison
    of kernels would take for a change.
    """
    told = {(measured.metric, measured.unit) for test in result.tests for measured in test.measurements}
    stored = dict(Metric.objects.filter(name__in={name for name, _ in told}).values_list("name", "unit"))
    for name, unit in sorted(told):
        if not same_unit(unit, known := stored.setdefault(name, unit)):
            return RejectedInput(name, f"expected it in {known}, as it is stored here; found {unit}")
    return None


def store_measurements(result: KernelResult, row: ReleaseResult) -> None:
    """Store the measurements of a result whose row exists."""
    catalog = fetch_test_catalog(result.tests)
    if catalog.changed_metrics:
        regrade(catalog.changed_metrics)
    rows = [
        Measurement(
            kernel=row.kernel,
            scenario=catalog.scenarios[scenario_key(test.suite, test.params)],
            machine=catalog.machines[test.machine.id],
            metric=catalog.metrics[measurement.metric],
            result=row,
            role=measurement.role,
            mean=measurement.side.mean,
            stddev=measurement.side.stddev,
            runs=measurement.side.n,
            samples=list(measurement.samples),
        )
        for test in result.tests
        for measurement in test.measurements
    ]
    database.insert(Measurement, database.stored(Measurement), [database.values(measurement) for measurement in rows])


# --- Reading again ---

_COLUMNS = ("scenario__key", "machine__name", "metric__name", "role", "mean", "stddev", "runs")
# What a payload says of a finding, and what follows from that and from the noise that is known.
_MEASURED = ("old_mean", "old_stddev_pct", "new_mean", "new_stddev_pct", "old_runs", "new_runs")
_SAMPLES = ("old_samples", "new_samples")
_GRADED = ("verdict", "change_pct", "change_pct_raw", "p_value", "low_pct", "high_pct", "effect", "noise_runs")


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """How many results and files were read again, how many of them changed, and how many are now rejected."""

    results: int = 0
    files: int = 0
    changed: int = 0
    rejected: int = 0


def read_again() -> ReadAgain:
    """Read every result and file again, each in its own transaction. What is now rejected stays as it was."""
    results = files = changed = rejected = 0
    bisected = BisectResult.objects.order_by("pk").iterator(chunk_size=100)
    released = ReleaseResult.objects.select_related("kernel").order_by("pk").iterator(chunk_size=100)
    for again in chain(
        (partial(_findings, row) for row in bisected), (partial(_measurements, row) for row in released)
    ):
        results += 1
        try:
            changed += again()
        except RejectedInput:
            rejected += 1
    for file in ToolOutput.objects.order_by("pk").iterator(chunk_size=20):
        files += 1
        if (kind := kind_of(file.text)) != file.kind:
            changed += ToolOutput.objects.filter(pk=file.pk).update(kind=kind)
    return ReadAgain(results, files, changed, rejected)


def _findings(row: BisectResult) -> bool:
    """Measure the findings of a result again; return whether they changed. One that is as it was keeps its grade."""
    result = reread(row.format, row.payload, row.bad_sha, str(row))
    with transaction.atomic():
        catalog = fetch_catalog([result], {})
        (measured,) = grade([result], catalog)
        again = {measurement.key: measurement for measurement in reversed(measured)}  # the first counts, as at intake
        stored = Finding.objects.filter(result=row).select_related("metric", "report")
        changed = [finding for finding in stored if _measured_again(finding, row, again)]
        Finding.objects.bulk_update(changed, (*_MEASURED, *_SAMPLES, *_GRADED))
        update_reports(changed)
        regrade(catalog.changed_metrics)  # today's code may know a direction that nobody did
    return bool(changed)


def _measured_again(finding: Finding, row: BisectResult, again: dict[tuple[int, int, int], GradedMeasurement]) -> bool:
    """Give a finding the values that its result has today; return whether they are others than it had."""
    measured = again.get((finding.metric_id, finding.scenario_id, finding.machine_id))
    if measured is None:
        return False
    values = NewFinding(measured, finding.report_id, row, finding.parent_id, finding.base).values()
    samples = (list(measured.data.old_samples), list(measured.data.new_samples))
    now = {**dict(zip(FIELDS, values, strict=True)), **dict(zip(_SAMPLES, samples, strict=True))}
    if all(getattr(finding, name) == now[name] for name in (*_MEASURED, *_SAMPLES)):
        return False
    for name in (*_MEASURED, *_SAMPLES, *_GRADED):
        setattr(finding, name, now[name])
    return True


def _measurements(row: ReleaseResult) -> bool:
    """Store the measurements of a result again; return whether they changed."""
    result = checked_parse(lambda: perf_release_result.parse(json.loads(row.payload), str(row)), str(row))
    stored = Measurement.objects.filter(result=row)
    with transaction.atomic():
        before = set(stored.values_list(*_COLUMNS))
        stored.delete()
        store_measurements(result, row)
        return set(stored.values_list(*_COLUMNS)) != before


# --- Results on curves ---

# It can be done again. A commit stands at its date, until its place in the mainline is known
# (tracker/services/curves.py). A bisect step, whose date nobody gives, stands beside the parent if it was good and
# beside the culprit if it was bad, which is where it lies in the history. A result that today's code can't read is
# logged and is on no curve.

MONITOR = "monitor"  # what a machine did meanwhile has a role of its own, and no curve
_MOST_ON_CURVES = 200  # results per transaction
_BESIDE = timedelta(seconds=1)
Row = TypeVar("Row", BisectResult, ReleaseResult, Finding)
_Name = tuple[str, str, str]  # of metric, scenario and machine
_Points = Iterator[tuple[_Name, CurvePoint]]


def extend_curves(now: datetime, most: int = 10_000) -> int:
    """Put results on curves that are not there yet, and look at these curves. Returns how many results there were."""
    done = 0
    while done < most and (count := _extend(BisectResult.objects.all(), _of_bisection)):
        done += count
    while done < most and (count := _extend(ReleaseResult.objects.select_related("kernel"), _of_kernel)):
        done += count
    mailed = Finding.objects.filter(result=None).select_related("report__culprit", "parent", "metric", "scenario")
    while done < most and (count := _extend(mailed.select_related("machine"), _of_mail)):
        done += count
    while refresh_stale(now):
        pass
    return done


@transaction.atomic
def _extend(rows: QuerySet[Row], points_of: Callable[[Row], _Points]) -> int:
    database.take(Lock.CURVES)  # before the rows are chosen: what another process is adding is not added again
    waiting = list(rows.filter(on_curves=False).order_by("pk")[:_MOST_ON_CURVES])
    if not waiting:
        return 0
    points: list[tuple[_Name, CurvePoint]] = []
    for row in waiting:
        try:
            points += list(points_of(row))
        except Exception as error:  # hostile input may raise anything; the other results are drawn
            log.warning("%s %s is on no curve: %s", type(row).__name__, row, error)
    # By the ids of what they name, which the intake has stored
    names = {name for name, _ in points}
    metrics = dict(Metric.objects.filter(name__in={triple[0] for triple in names}).values_list("name", "pk"))
    scenarios = dict(Scenario.objects.filter(key__in={triple[1] for triple in names}).values_list("key", "pk"))
    machines = dict(Machine.objects.filter(name__in={triple[2] for triple in names}).values_list("name", "pk"))
    by_curve: dict[curves.CurveKey, list[CurvePoint]] = {}
    for (metric, scenario, machine), point in points:
        if metric in metrics and scenario in scenarios and machine in machines:
            by_curve.setdefault((metrics[metric], scenarios[scenario], machines[machine]), []).append(point)
    curves.add(by_curve)
    type(waiting[0])._default_manager.filter(pk__in=[row.pk for row in waiting]).update(on_curves=True)
    return len(waiting)


def _of_bisection(row: BisectResult) -> _Points:
    result, source = reread(row.format, row.payload, row.bad_sha, str(row)), f"result {row.pk}"
    good, bad = result.parent or result.good, result.culprit or result.bad
    bad_at = bad.date or row.created_at
    good_at = min(good.date or bad_at, bad_at) - _BESIDE  # before the bad one, whatever their clocks say
    for run in result.runs:
        for measurement in run.measurements:
            name = (measurement.metric, scenario_key(run.suite, run.params), run.machine.id)
            if measurement.role == MONITOR:
                continue
            if measurement.old_samples:
                yield name, CurvePoint(good_at, good.sha, measurement.old_samples, source)
            if measurement.new_samples:
                yield name, CurvePoint(bad_at, bad.sha, measurement.new_samples, source)
            if measurement is not result.headline or result.format != perf_bisect_result.FORMAT:
                continue  # only our own format has steps
            for step in json.loads(result.payload).get("bisect", {}).get("steps", ()):
                sha, verdict, samples = step["sha"], step["verdict"], step.get("samples")
                if verdict in ("good", "bad") and samples and sha not in (good.sha, bad.sha):
                    at = good_at - _BESIDE if verdict == "good" else bad_at + _BESIDE
                    yield name, CurvePoint(at, sha, tuple(map(float, samples)), source)


def _of_kernel(row: ReleaseResult) -> _Points:
    result = perf_release_result.parse(json.loads(row.payload), str(row))
    kernel = result.kernel
    version = f"{kernel.name}/{kernel.variant}" if kernel.variant else kernel.name
    for test in result.tests:
        for measurement in test.measurements:
            if measurement.role != MONITOR:
                samples = measurement.samples or (measurement.side.mean,)  # a bare mean counts as one sample
                at, source = kernel.committed_at or result.created_at, f"release result {row.pk}"
                name = (measurement.metric, scenario_key(test.suite, test.params), test.machine.id)
                yield name, CurvePoint(at, version, samples, source)


def _of_mail(row: Finding) -> _Points:
    """Yield the points of a finding that a mailed report printed: the mean of each side, as one sample."""
    name = (row.metric.name, row.scenario.key, row.machine.name)
    culprit, at = row.report.culprit, row.report.culprit.authored_at or row.report.reported_at
    if at and row.parent and row.old_mean is not None and row.new_mean is not None:
        source = f"report {culprit.sha10}"
        yield name, CurvePoint(at - _BESIDE, row.parent.sha, (row.old_mean,), source)
        yield name, CurvePoint(at, culprit.sha, (row.new_mean,), source)
