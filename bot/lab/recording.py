"""Record how a job ended: the result as received, and the event by which the report's state follows."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from bot.lab.job_result import JobResult
from bot.results.errors import RejectedInput
from tracker.domain.events import Awaited, EventData, EventKind, Grade, Verdict
from tracker.domain.lab.jobs import SENTENCES, JobOutcome, measured_metrics
from tracker.domain.report_state.fold import fold
from tracker.domain.statistics.significance import grade
from tracker.models import Finding, LabJob
from tracker.models.reports import NEWS
from tracker.services import lab_jobs
from tracker.services.reports import event_log

_MEASURED = {
    Grade.IMPROVEMENT: EventKind.FIX_CONFIRMED,
    Grade.NOT_SIGNIFICANT: EventKind.FIX_WITHOUT_EFFECT,
    Grade.REGRESSION: EventKind.FIX_WITHOUT_EFFECT,
}


def record_result(job: LabJob, result: JobResult, payload: str, now: datetime) -> bool:
    """Record what a runner handed in; False if its lease is lost. Raises RejectedInput if the metric is missing."""
    kind = EventKind.FIX_FAILED
    if result.outcome is JobOutcome.MEASURED:
        kind = _MEASURED.get(_grade(job, result), EventKind.ANSWERED)
    with transaction.atomic():
        if not lab_jobs.finish(job, result.outcome, result.detail, now, payload, result.lease):
            return False
        _record(job, kind, result.base, now)
    return True


def record_outcome(job: LabJob, outcome: JobOutcome, detail: str, now: datetime) -> bool:
    """Record that a job ended without a runner."""
    with transaction.atomic():
        if not lab_jobs.finish(job, outcome, detail, now):
            return False
        _record(job, EventKind.FIX_FAILED, "", now)
    return True


def _grade(job: LabJob, result: JobResult) -> Grade:
    head = headline(job)
    measured = result.of_metric(head.metric.name)
    if measured is None:
        raise RejectedInput("result, /measurements", f"expected the metric {head.metric.name!r} among them")
    return grade(measured, head.metric.direction).verdict


def headline(job: LabJob) -> Finding:
    """Return the finding that a job measures again. Raises RejectedInput if the report has none."""
    found = _headline(job)
    if found is None:
        raise RejectedInput("result", "the report has no findings to compare it with")
    return found


def _headline(job: LabJob) -> Finding | None:
    rows = job.report.findings.select_related("metric", "scenario", "machine")
    return rows.order_by("-headline", "pk").first()


def _record(job: LabJob, kind: EventKind, base: str, now: datetime) -> None:
    """Add the event; where it would leave the report waiting for the lab, the lab has at least answered."""
    report, remark = job.report, ""
    if sentence := SENTENCES.get(JobOutcome(job.outcome)):
        remark = sentence.format(base=base or job.base[:12] or "the culprit")
    events = [each.value() for each in report.events.all()]

    def made(as_kind: EventKind) -> EventData:
        key = f"{as_kind}:{job.name}"
        return EventData(
            # A job that was opened again has an event of that key already, which somebody undid.
            key=f"{key}:{now:%Y%m%dT%H%M%S%f}" if any(each.key == key for each in events) else key,
            kind=as_kind,
            occurred_at=now,
            result=job.name,
            title=job.title,
            remark=remark,
            in_reply_to=job.patch_mail,
        )

    event = made(kind)
    if fold(Verdict(report.verdict), [*events, event]).awaited is Awaited.REPORTER:
        event = made(EventKind.ANSWERED)
    named = head.metric.name if (head := _headline(job)) else ""
    numbers = next((str(each) for each in measured_metrics(job.payload) if each.name == named), "")
    row = event_log.event_row(report, event, now, numbers or job.detail)
    row.notify_thread = event.kind not in NEWS  # those are mailed anyway
    event_log.record([row])
