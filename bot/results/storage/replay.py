"""Read stored release results and evidence again with today's code (DESIGN rule 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db import transaction

from bot.results.errors import RejectedInput
from bot.results.formats import perf_release_result
from bot.results.storage.kernel_results import store_measurements
from tracker.domain.tool_output.kinds import kind_of
from tracker.models import Measurement, ReleaseResult, ToolOutput

_COLUMNS = ("scenario__key", "machine__name", "metric__name", "role", "mean", "stddev", "runs")


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
    for row in ReleaseResult.objects.select_related("kernel").order_by("pk").iterator(chunk_size=100):
        results += 1
        try:
            changed += _result(row)
        except RejectedInput:
            rejected += 1
    for file in ToolOutput.objects.order_by("pk").iterator(chunk_size=20):
        files += 1
        if (kind := kind_of(file.text)) != file.kind:
            changed += ToolOutput.objects.filter(pk=file.pk).update(kind=kind)
    return ReadAgain(results, files, changed, rejected)


def _result(row: ReleaseResult) -> bool:
    """Store the measurements of a result again; return whether they changed."""
    result = perf_release_result.parse(json.loads(row.payload), str(row))
    stored = Measurement.objects.filter(result=row)
    with transaction.atomic():
        before = set(stored.values_list(*_COLUMNS))
        stored.delete()
        store_measurements(result, row)
        return set(stored.values_list(*_COLUMNS)) != before
