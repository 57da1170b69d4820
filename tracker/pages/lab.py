"""`/lab/`: what people asked the lab for and have not got yet, and a page for each job.

The overdue requests come first. The list takes a constant number of queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.domain.events import EventData
from tracker.domain.lab_jobs import MeasuredMetric, PendingRequest, measured_metrics
from tracker.models import Event, LabJob, Message, Report
from tracker.services.lab_jobs import owed_reports

MOST = 200  # reports, those that have waited longest


@dataclass(frozen=True, slots=True)
class LabRow:
    """A request with its report. `quote`: its words; `mail`: what it was asked in, None for an action here; `job`: what
    runners see of it, once it is open.
    """

    report: Report
    pending: PendingRequest
    quote: str
    mail: Message | None
    is_overdue: bool
    job: LabJob | None = None


@dataclass(frozen=True, slots=True)
class WorkList:
    """The requests, the overdue and then the oldest first. `cut`: whether more reports wait than were looked at."""

    rows: Sequence[LabRow]
    cut: bool


def work_list(now: datetime) -> WorkList:
    """Return what the lab owes in the reports that have waited for it longest."""
    owed = owed_reports(MOST + 1)
    cut, owed = len(owed) > MOST, owed[:MOST]
    pending_requests = [(owed_report, pending) for owed_report in owed for pending in owed_report.pending_requests]
    mails = _mails([pending.event for _, pending in pending_requests])
    stored = LabJob.objects.filter(report__in=[owed_report.report for owed_report in owed]).defer("payload")
    jobs = {(job.report_id, job.event_key): job for job in stored}
    rows = [
        _row(
            owed_report.report,
            pending,
            owed_report.events,
            mails,
            jobs.get((owed_report.report.pk, pending.event.key)),
            now,
        )
        for owed_report, pending in pending_requests
    ]
    return WorkList(sorted(rows, key=lambda row: (not row.is_overdue, row.pending.due_at, row.report.pk)), cut)


def _mails(events: Sequence[EventData]) -> dict[str, Message]:
    ids = {event.message_id for event in events if event.message_id}
    rows = Message.objects.filter(message_id__in=ids).defer("tables", "own_text", "source")
    return {row.message_id: row for row in rows}


def _row(
    report: Report,
    pending: PendingRequest,
    events: Sequence[Event],
    mails: Mapping[str, Message],
    job: LabJob | None,
    now: datetime,
) -> LabRow:
    quote = next((event.quote for event in events if event.key == pending.event.key), "") or pending.event.remark
    return LabRow(report, pending, quote, mails.get(pending.event.message_id), pending.is_overdue(now), job)


@dataclass(frozen=True, slots=True)
class JobPage:
    """A job with the mail that asks, the mail with its patch, and what was measured."""

    job: LabJob
    asking: Message | None
    patch: Message | None
    measured: Sequence[MeasuredMetric]


def job_page(pk: int) -> JobPage:
    """Return the page of one job; raise Http404 if there is none."""
    job = get_object_or_404(LabJob.objects.select_related("report__culprit"), pk=pk)
    mails = {mail.message_id: mail for mail in _named(job)}
    return JobPage(job, mails.get(job.asked_in), mails.get(job.patch_mail), measured_metrics(job.payload))


def _named(job: LabJob) -> QuerySet[Message]:
    ids = {message_id for message_id in (job.asked_in, job.patch_mail) if message_id}
    return Message.objects.filter(message_id__in=ids).defer("tables", "own_text", "source")


# --- Views ---


@require_safe
def lab(request: HttpRequest) -> HttpResponse:
    """Show the requests that wait for the lab, the overdue ones first."""
    return render(request, "lab/lab.html", {"work": work_list(timezone.now())})


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one job: who asked for what, what was measured, and what became of it."""
    return render(request, "lab/job.html", {"page": job_page(pk)})
