"""Read stored results and tool output again with today's code (DESIGN rule 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import chain

from django.db import transaction

from bot.results.errors import RejectedInput, checked_parse
from bot.results.formats import perf_release_result
from bot.results.recognise import reread
from bot.results.storage.catalog import fetch_catalog
from bot.results.storage.graded import FIELDS, GradedMeasurement, NewFinding
from bot.results.storage.grading import grade
from bot.results.storage.kernel_results import store_measurements
from tracker.domain.tool_output.kinds import kind_of
from tracker.models import BisectResult, Finding, Measurement, ReleaseResult, ToolOutput
from tracker.services.reports.regrading import regrade, update_reports

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
        again = {each.key: each for each in reversed(measured)}  # the first counts, as at intake
        stored = Finding.objects.filter(result=row).select_related("metric", "report")
        changed = [each for each in stored if _measured_again(each, row, again)]
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
