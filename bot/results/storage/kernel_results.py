"""Release results into the database: each stored once, whole, with its measurements and its evidence."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from datetime import datetime

from django.db import DataError, IntegrityError, OperationalError, transaction

from bot.results.errors import Conflict, RejectedInput
from bot.results.kernel_result import KernelResult
from bot.results.storage.bisect_results import Taken, changed_paths, conflict_reason
from bot.results.storage.catalog import machine_row
from tracker.domain.errors import InvalidInput
from tracker.domain.keys import scenario_key
from tracker.models import Kernel, Machine, Measurement, ReleaseResult, Scenario
from tracker.services import catalog, tool_output
from tracker.services.reports.regrading import regrade
from tracker.services.sql import bulk

log = logging.getLogger(__name__)
_TRIES = 4


@dataclass(frozen=True, slots=True)
class ReleaseReceipt:
    """The outcome for a release result: its row."""

    taken: Taken
    row: ReleaseResult
    left_out: tuple[str, ...] = ()  # evidence files not kept, each with the reason

    @property
    def summary(self) -> str:
        return "; ".join([f"{self.row.kernel}, measured", *self.left_out])


def take(result: KernelResult, now: datetime) -> ReleaseReceipt | RejectedInput:
    """Store one result. The same content again is a duplicate; other content under its key is a Conflict."""
    for attempt in range(_TRIES):
        try:
            with transaction.atomic():
                return _take(result, now)
        except (DataError, ArithmeticError, ValueError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            return RejectedInput("", f"the database can't store it: {reason}")
        except (IntegrityError, OperationalError) as error:  # another worker created the same machine
            log.info("attempt %d failed: %s", attempt + 1, error)
            if attempt == _TRIES - 1:
                return RejectedInput("", f"the database can't store it: {str(error).splitlines()[0]}")
    raise AssertionError("never reached")


def _take(result: KernelResult, now: datetime) -> ReleaseReceipt | RejectedInput:
    digest = hashlib.sha256(result.payload.encode()).hexdigest()
    known = ReleaseResult.objects.filter(producer=result.producer, external_id=result.id)
    if row := known.select_related("kernel").first():
        paths = changed_paths(json.loads(row.payload), json.loads(result.payload)) if row.digest != digest else []
        if paths:
            return Conflict("", conflict_reason(str(row), paths), [(path, "differs") for path in paths])
        return ReleaseReceipt(Taken.DUPLICATE, row)
    row = ReleaseResult.objects.create(
        producer=result.producer,
        external_id=result.id,
        digest=digest,
        payload=result.payload,
        kernel=_kernel(result),
        created_at=result.created_at,
        received_at=now,
    )
    store_measurements(result, row)
    machine_and_scenario = _machine_and_scenario(result)
    left_out = []
    for each in result.evidence:
        try:
            tool_output.attach_to_kernel(
                row.kernel, each.name, each.text, result.producer, now, row, *machine_and_scenario
            )
        except InvalidInput as error:  # the measurements are kept all the same
            left_out.append(str(error))
    return ReleaseReceipt(Taken.NEW, row, tuple(left_out))


def _kernel(result: KernelResult) -> Kernel:
    kernel = result.kernel
    first = {"measured_at": result.created_at, "describe": kernel.describe}
    return Kernel.objects.get_or_create(name=kernel.name, variant=kernel.variant, defaults=first)[0]


def _machine_and_scenario(result: KernelResult) -> tuple[Machine, Scenario]:
    """Return the machine and scenario of the first test, where the evidence was taken."""
    first = result.tests[0]
    key = scenario_key(first.suite, first.params)
    return Machine.objects.get(name=first.machine.id), Scenario.objects.get(key=key)


def store_measurements(result: KernelResult, row: ReleaseResult) -> None:
    """Store the measurements of a result whose row exists."""
    machines = catalog.machines(machine_row(test.machine) for test in result.tests)
    scenarios = catalog.scenarios(
        Scenario(key=scenario_key(test.suite, test.params), suite=test.suite, params=dict(test.params))
        for test in result.tests
    )
    metrics, changed_metrics = catalog.metrics(
        catalog.new_metric(each.metric, each.unit, each.direction, test.suite)
        for test in result.tests
        for each in test.measured
    )
    if changed_metrics:
        regrade(changed_metrics)
    rows = [
        Measurement(
            kernel=row.kernel,
            scenario=scenarios[scenario_key(test.suite, test.params)],
            machine=machines[test.machine.id],
            metric=metrics[each.metric],
            result=row,
            role=each.role,
            mean=each.side.mean,
            stddev=each.side.stddev,
            runs=each.side.n,
            samples=list(each.samples),
        )
        for test in result.tests
        for each in test.measured
    ]
    bulk.insert(Measurement, bulk.stored(Measurement), [bulk.values(each) for each in rows])
