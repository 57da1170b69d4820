"""The requests that wait for the lab, in a constant number of queries."""

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

# --- The requests that wait for the lab, in a constant number of queries ---

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
    found = owed_reports(MOST + 1)
    cut, found = len(found) > MOST, found[:MOST]
    pending_requests = [(each, pending) for each in found for pending in each.pending_requests]
    mails = _mails([pending.event for _, pending in pending_requests])
    stored = LabJob.objects.filter(report__in=[each.report for each in found]).defer("payload")
    jobs = {(job.report_id, job.event_key): job for job in stored}
    rows = [
        _row(each.report, pending, each.events, mails, jobs.get((each.report.pk, pending.event.key)), now)
        for each, pending in pending_requests
    ]
    return WorkList(sorted(rows, key=lambda row: (not row.is_overdue, row.pending.due_at, row.report.pk)), cut)


def _mails(events: Sequence[EventData]) -> dict[str, Message]:
    ids = {each.message_id for each in events if each.message_id}
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
    quote = next((each.quote for each in events if each.key == pending.event.key), "") or pending.event.remark
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
    mails = {each.message_id: each for each in _named(job)}
    return JobPage(job, mails.get(job.asked_in), mails.get(job.patch_mail), measured_metrics(job.payload))


def _named(job: LabJob) -> QuerySet[Message]:
    ids = {each for each in (job.asked_in, job.patch_mail) if each}
    return Message.objects.filter(message_id__in=ids).defer("tables", "own_text", "source")


# --- `/lab/`: what people asked the lab, and have not got yet ---


@require_safe
def lab(request: HttpRequest) -> HttpResponse:
    """Show the requests that wait for the lab, the overdue ones first."""
    return render(request, "lab/lab.html", {"work": work_list(timezone.now())})


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one job: who asked for what, what was measured, and what became of it."""
    return render(request, "lab/job.html", {"page": job_page(pk)})
