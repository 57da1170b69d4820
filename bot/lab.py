"""What people ask the lab to test: the patch, the job for a runner, and its result.

A job is opened for each request the lab must answer, with its patch and base; those that nobody waits for are
withdrawn. A patch that applies to none of its possible bases in a followed tree ends its job at once.

A runner hands in a result (perf-job-result/1). It is stored as received, with the event from which the report's state
follows.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Q

from bot.git import inspection
from bot.mail.authentication import AuthVerdict, Trust
from bot.mail.branches import ref_in
from bot.mail.quoting import own_text
from bot.mail.settings import BotSettings
from bot.replies import gate
from bot.replies.reading import understand
from bot.requested_patches import NONE, RequestedPatch, patch_of, prefixes, requested_patch
from bot.results.formats.checks import Schema
from bot.results.grading import FIX_KINDS
from bot.results.values import RejectedInput
from tracker.domain.events import EventData, EventKind, Role
from tracker.domain.lab_jobs import (
    SENTENCES,
    UNFINISHED,
    JobOutcome,
    MeasuredMetric,
    PendingRequest,
    Request,
    measured_metrics,
    metrics_of,
)
from tracker.domain.report_state import effective_events
from tracker.domain.statistics import grade
from tracker.models import Finding, LabJob, Message, Report
from tracker.services import lab_jobs
from tracker.services.lab_jobs import OwedReport

# --- Results ---

_SCHEMA = Schema("perf-job-result-1")


@dataclass(frozen=True, slots=True)
class JobResult:
    """`base`: the kernel that was patched, as people name it; `detail`: what went wrong, a line."""

    lease: str
    outcome: JobOutcome
    base: str
    detail: str
    measurements: tuple[MeasuredMetric, ...]

    def of_metric(self, name: str) -> MeasuredMetric | None:
        return next((measurement for measurement in self.measurements if measurement.name == name), None)


def parse(payload: Any) -> JobResult:
    """Return a result. Raises RejectedInput with the pointer of each fault."""
    _SCHEMA.check(payload, "result")
    base = payload.get("base", {})
    return JobResult(
        lease=payload["lease"],
        outcome=JobOutcome(payload["outcome"]),
        base=base.get("describe") or str(base.get("sha", ""))[:12],
        detail=" ".join(payload.get("detail", "").split()),
        measurements=metrics_of(payload),
    )


def stored(payload: str) -> JobResult:
    """Return the result that a job keeps."""
    return parse(json.loads(payload))


# --- Recording ---


def record_result(job: LabJob, result: JobResult, payload: str, now: datetime) -> bool:
    """Record what a runner handed in; False if its lease is lost. Raises RejectedInput if the metric is missing."""
    kind = EventKind.FIX_FAILED
    if result.outcome is JobOutcome.MEASURED:
        head = headline(job)
        measured = result.of_metric(head.metric.name)
        if measured is None:
            raise RejectedInput("result, /measurements", f"expected the metric {head.metric.name!r} among them")
        kind = FIX_KINDS.get(grade(measured, head.metric.direction).verdict, EventKind.ANSWERED)
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


def headline(job: LabJob) -> Finding:
    """Return the finding that a job measures again. Raises RejectedInput if the report has none."""
    finding = _headline(job)
    if finding is None:
        raise RejectedInput("result", "the report has no findings to compare it with")
    return finding


def _headline(job: LabJob) -> Finding | None:
    rows = job.report.findings.select_related("metric", "scenario", "machine")
    return rows.order_by("-headline", "pk").first()


def _record(job: LabJob, kind: EventKind, base: str, now: datetime) -> None:
    """Add the event of a job's end, with its numbers or what went wrong."""
    sentence = SENTENCES.get(JobOutcome(job.outcome), "")
    remark = sentence.format(base=base or job.base[:12] or "the culprit")
    named = head.metric.name if (head := _headline(job)) else ""
    numbers = next((str(metric) for metric in measured_metrics(job.payload) if metric.name == named), "")
    lab_jobs.record_end(
        job, kind, now, remark=remark, quote=numbers or ("" if lab_jobs.is_private(job) else job.detail)
    )


# --- Opening ---

MOST = 500  # reports in a round, those that have waited longest
_WITH_PATCH = (Request.TEST, Request.MEASURE)
log = logging.getLogger(__name__)


def open_jobs(settings: BotSettings, trees: Sequence[Path], now: datetime) -> int:
    """Bring the jobs up to date with what the lab owes; return how many were opened.

    A patch that applies to none of its possible bases in a followed tree ends its job at once, for all who asked.
    """
    owed_reports = lab_jobs.owed_reports(MOST)
    owed = {
        (owed_report.report.pk, pending.event.key): (owed_report, pending)
        for owed_report in owed_reports
        for pending in owed_report.pending_requests
    }
    lab_jobs.withdraw_all_but(owed.keys(), UNFINISHED if len(owed_reports) < MOST else ())
    lab_jobs.reopen(owed.keys())
    opened = 0
    with_jobs = lab_jobs.requests_with_jobs(owed_report.report for owed_report in owed_reports)
    for key, (owed_report, pending) in owed.items():
        if key not in with_jobs:
            opened += _try_open(owed_report, pending, settings, trees, now)
    for job in lab_jobs.unchecked():
        requests = [owed[job.report_id, key] for key in job.requests if (job.report_id, key) in owed]
        if requests:
            _try_check(job, requests, settings, trees, now)
    for job in lab_jobs.refused():
        _answer_if_it_does_not_apply(job, now)
    return opened


def _try_open(
    owed: OwedReport, pending: PendingRequest, settings: BotSettings, trees: Sequence[Path], now: datetime
) -> bool:
    """Open one job; a mail or a tree that can't be read keeps no other from being opened."""
    report = owed.report
    try:
        events = [event.value() for event in owed.events]
        patch = _patch_for(report, pending, events)
        proven = _may_be_run(report, pending.event, patch, events, settings)
        if job := _job_for_the_same(report, patch):
            with transaction.atomic():
                if lab_jobs.join(job, pending.event.key, proven=proven):
                    return False  # somebody else asked for it, too: it is tested once, and both are answered
        columns = _checked(report, patch, trees) | {"proven": proven}
        return bool(lab_jobs.open_job(report, pending, now, asked_in=pending.event.message_id, **columns))
    except Exception:  # bad mail, or a broken tree
        log.exception("%s: the job for %s could not be opened", report.culprit.sha10, pending.event.key)
        return False


def _try_check(
    job: LabJob,
    requests: Sequence[tuple[OwedReport, PendingRequest]],
    settings: BotSettings,
    trees: Sequence[Path],
    now: datetime,
) -> None:
    """Look again for the patch of a job: a part of its series has come, or it is to be tested again.

    `requests`: those that it answers and that are still owed; each of them may be what proves it.
    """
    owed, first = requests[0]
    report = owed.report
    try:
        events = [event.value() for event in owed.events]
        patch = _patch_for(report, first, events)
        if patch.text:
            asking = (pending.event for _, pending in requests)
            proven = any(_may_be_run(report, event, patch, events, settings) for event in asking)
            # Who allowed it has not seen this text.
            columns = _checked(report, patch, trees) | {"proven": proven, "allowed_by": ""}
            with transaction.atomic():
                _answer_if_it_does_not_apply(lab_jobs.correct(job, columns), now)
    except Exception:  # bad mail, or a broken tree
        log.exception("%s: %s could not be checked again", report.culprit.sha10, job.name)


def _patch_for(report: Report, pending: PendingRequest, events: Sequence[EventData]) -> RequestedPatch:
    if pending.request not in _WITH_PATCH:
        return NONE
    argument = pending.event.remark if pending.request is Request.TEST else ""
    return requested_patch(
        pending.event.message_id, _candidate(events, pending.event), argument, culprit=report.culprit.sha
    )


def _checked(report: Report, patch: RequestedPatch, trees: Sequence[Path]) -> dict[str, Any]:
    """Return the columns of a job for a patch: what it is, and whether it applies."""
    check, where = inspection.ApplyCheck(), ""
    if patch.text:
        # At the commit that it names, at the culprit, or at the head of the tree
        bases = [base for base in (patch.base, report.culprit.sha) if base]
        check = inspection.check(trees, bases, patch.text)
        if check.known and not check.base and patch.in_series:
            failing = (part for part, text in prefixes(patch) if not inspection.check(trees, bases, text).base)
            where = f"{next(failing, '')}: "
    # A runner that has the commit may test what applies nowhere here.
    elsewhere = patch.base in check.missing and not check.base
    applies = bool(check.base) if check.known and not elsewhere else None
    detail = f"its base {patch.base[:12]} is in none of the followed trees" if elsewhere else patch.missing
    return {
        "title": patch.title[:500],
        "patch_mail": patch.message_id,
        "patch_parts": list(patch.parts),
        "parts_private": Message.objects.filter(message_id__in=patch.parts, public=False).exists(),
        "patch_digest": patch.digest,
        "in_series": patch.in_series,
        "branch": patch.branch,
        "base": check.base or patch.base,
        "applies": applies,
        "detail": f"{where}{check.error}" if applies is False else detail,
    }


def _answer_if_it_does_not_apply(job: LabJob, now: datetime) -> None:
    """A stranger's patch is not answered, and what is beyond a day's answers of a report waits for the next day."""
    if job.applies is False and job.proven and not lab_jobs.answered_enough(job.report, now):
        record_outcome(job, JobOutcome.NOT_APPLIED, job.detail, now)


def _job_for_the_same(report: Report, patch: RequestedPatch) -> LabJob | None:
    """Return the unfinished job of a report that tests the same text, or branch or mail, on the same base."""
    if not (patch.message_id or patch.branch):
        return None
    rows = lab_jobs.unfinished().filter(report=report, branch=patch.branch, patch_digest=patch.digest)
    rows = rows if patch.text else rows.filter(patch_mail=patch.message_id)
    return rows.filter(Q(applies=True) | Q(base=patch.base)).first()


def _may_be_run(
    report: Report, event: EventData, patch: RequestedPatch, events: Sequence[EventData], settings: BotSettings
) -> bool:
    """Whether the gate lets any runner of the lab test a patch: if people of the report signed the mail that asks and
    each one that has a part of the patch, or a person here vouches for exactly these mails.

    Under the policy `open` nothing need be signed, but the patch is by people of the report all the same.
    """
    named = patch.mails | ({event.message_id} if event.message_id else set())
    people = report.verified_authors | report.verified_maintainers
    rows = Message.objects.filter(message_id__in=named).select_related("source", "report__culprit")
    theirs = {
        row.message_id: row
        for row in rows.defer("own_text", "tables")
        if settings.aliases.of(row.author_email) & people or settings.speaks_for_lab(row.author_email)
    }
    proven = {
        name for name, row in theirs.items() if row.trust == AuthVerdict.PASS and _is_surely_asked(row, patch, settings)
    }
    vouched = {entry.message_id for entry in effective_events(list(events)) if entry.actor}
    if named <= proven | vouched and (named or event.actor):
        standing = gate.Standing(Trust(AuthVerdict.PASS), Role.REPORTER)
    else:
        is_theirs = patch.mails <= theirs.keys() | vouched
        standing = gate.Standing(role=event.role if is_theirs else Role.THIRD_PARTY)
    return bool(gate.permitted(gate.Caused.JOB, standing, settings.trust_policy))


def _is_surely_asked(row: Message, patch: RequestedPatch, settings: BotSettings) -> bool:
    """Whether a signed mail has the same patch, or the same branch, however it is read, and above all that may be an
    older mail (reading.py).
    """
    reading = understand(row.source.raw, settings)
    if reading.others is None:
        return False
    variants = (reading, *reading.others, *(reading.certain or ()))
    if row.message_id in patch.mails:
        return len({patch_of(variant.mail).text for variant in variants}) == 1
    culprit = row.report.culprit.sha
    named = {ref_in(own_text(variant.mail.text), culprit) for variant in variants}
    return not patch.branch or named == {patch.branch}


def _candidate(events: Sequence[EventData], request: EventData) -> str:
    """Return the mail with the newest candidate fix at the time of a request, or ""."""
    posted = [
        event
        for event in effective_events(list(events))
        if event.kind is EventKind.FIX_PROPOSED and event.message_id and event.occurred_at <= request.occurred_at
    ]
    return max(posted, key=EventData.order).message_id if posted else ""
