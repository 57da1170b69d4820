"""A result into the database: once, whole, with its findings, its report and the report's first event."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import IntegrityError, transaction

from bot.ingest.errors import Refused
from bot.ingest.value import CommitTold, Measurement, Result, TestRun
from bot.replies.addresses import Address
from bot.replies.known import known_as
from bot.replies.patches import bare_title
from bot.subsystem import subsystem_of
from tracker import registry, significance
from tracker.models import BisectResult, Commit, Finding, Report
from tracker.models.result import Outcome
from tracker.status import Verdict


class Taken(StrEnum):
    """What became of a result."""

    NEW = "new"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a result, and the report that it belongs to (none for an inconclusive one)."""

    taken: Taken
    report: Report | None


def take(result: Result, now: datetime, *, again: bool = False) -> Receipt:
    """Store a result. The same again is a duplicate; another payload under its key is Refused.

    Two workers may be handed the same result at once: the unique key lets one of them in.
    """
    try:
        with transaction.atomic():
            row = _insert(result, now)
            report = _report(result) if result.outcome == Outcome.CONCLUSIVE else None
            if report:
                row.report = report
                row.save(update_fields=["report"])
                for finding in _findings(result, report, row):
                    registry.add_finding(finding)
            return Receipt(Taken.NEW, report)
    except IntegrityError:
        # Known, or somebody took another result about the same culprit at this moment: then once more.
        known = BisectResult.objects.filter(producer=result.producer, external_id=result.id).first()
        if known is None and not again:
            return take(result, now, again=True)
        if known is None:
            raise
        if known.digest != _digest(result):
            paths = ", ".join(changed_paths(json.loads(known.payload), json.loads(result.payload))[:5])
            raise Refused("", f"{known} was taken with another content before; they differ at {paths}") from None
        return Receipt(Taken.DUPLICATE, known.report)


def _digest(result: Result) -> str:
    return hashlib.sha256(result.payload.encode("utf-8", "surrogatepass")).hexdigest()


def _insert(result: Result, now: datetime) -> BisectResult:
    return BisectResult.objects.create(
        producer=result.producer,
        external_id=result.id,
        digest=_digest(result),
        payload=result.payload,
        outcome=result.outcome,
        created_at=result.created_at,
        received_at=now,
    )


def changed_paths(old: object, new: object, at: str = "", depth: int = 0) -> list[str]:
    """The JSON pointers at which two values differ, down to a bounded depth."""
    if depth > 20:
        return [] if old == new else [at]
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [path for key in keys for path in changed_paths(old.get(key), new.get(key), f"{at}/{key}", depth + 1)]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [path for number, (a, b) in pairs for path in changed_paths(a, b, f"{at}/{number}", depth + 1)]
    return [] if old == new else [at or "/"]


def _report(result: Result) -> Report:
    assert result.culprit  # the schema wants one of a conclusive result
    headline = next(each for each in result.runs[0].measurements if each.role == "headline")
    culprit = _commit(result.culprit, patch_message_id=result.patch_message_id)
    tree = registry.tree_for(result.tree, result.tree_url)
    author = Address(result.culprit.author_name, result.culprit.author_email.lower())
    return registry.report_for(
        culprit,
        _verdict(headline),
        subsystem=subsystem_of(result.culprit.title),
        tree=tree,
        branch=result.branch,
        authors=known_as([author]),
    )


def _commit(told: CommitTold, patch_message_id: str = "") -> Commit:
    return registry.commit_for(
        told.sha,
        title=bare_title(told.title),
        author_name=told.author_name,
        author_email=told.author_email.lower(),
        authored_at=told.date,
        trailers=[list(pair) for pair in told.trailers],
        patch_message_id=patch_message_id,
    )


def _verdict(measurement: Measurement) -> Verdict:
    return significance.verdict(measurement.old.mean, measurement.new.mean, measurement.direction)


def _findings(result: Result, report: Report, row: BisectResult) -> Sequence[Finding]:
    parent = _commit(result.parent) if result.parent else None
    base = result.parent.describe if result.parent and result.parent.describe else result.good.describe
    return [
        _finding(run, measurement, report, row, parent, base) for run in result.runs for measurement in run.measurements
    ]


def _finding(
    run: TestRun, told: Measurement, report: Report, row: BisectResult, parent: Commit | None, base: str
) -> Finding:
    raw = significance.change_pct(told.old.mean, told.new.mean)
    box = run.machine
    machine = registry.machine_for(
        box.id,
        cpus=box.cpus,
        sockets=box.sockets,
        cpu_model=box.cpu_model,
        codename=box.codename,
        memory_bytes=box.memory_bytes,
    )
    return Finding(
        report=report,
        metric=registry.metric_for(told.metric, told.unit, told.direction),
        scenario=registry.scenario_for(run.suite, run.params),
        machine=machine,
        parent=parent,
        base=base,
        headline=told.role == "headline",
        verdict=_verdict(told),
        change_pct=significance.better_pct(raw, told.direction),
        change_pct_raw=raw,
        old_mean=told.old.mean,
        old_stddev_pct=told.old.stddev_pct,
        new_mean=told.new.mean,
        new_stddev_pct=told.new.stddev_pct,
        old_runs=told.old.n,
        new_runs=told.new.n,
        old_samples=list(told.old_samples),
        new_samples=list(told.new_samples),
        result=row,
    )
