"""`/lab/`: what people asked the lab for and have not got yet, and a page for each job.

The overdue requests come first. The list takes a constant number of queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.domain.lab_jobs import PendingRequest, measured_metrics
from tracker.models import LabJob, Message, Report
from tracker.services.accounts import shown_messages
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


def work_list(now: datetime) -> tuple[list[LabRow], bool]:
    """Return the requests, the overdue and then the oldest first, and whether more reports wait than were looked at."""
    owed = owed_reports(MOST + 1)
    cut, owed = len(owed) > MOST, owed[:MOST]
    asked_in = (pending.event.message_id for entry in owed for pending in entry.pending_requests)
    mails = _mails(asked_in, Q(public=True))
    stored = LabJob.objects.filter(report__in=[entry.report for entry in owed]).defer("payload")
    jobs = {(job.report_id, job.event_key): job for job in stored}
    rows = []
    for entry in owed:
        for pending in entry.pending_requests:
            event = pending.event
            quote = next((other.quote for other in entry.events if other.key == event.key), "") or event.remark
            job = jobs.get((entry.report.pk, event.key))
            overdue = pending.is_overdue(now)
            rows.append(LabRow(entry.report, pending, quote, mails.get(event.message_id), overdue, job))
    return sorted(rows, key=lambda row: (not row.is_overdue, row.pending.due_at, row.report.pk)), cut


def _mails(message_ids: Iterable[str], shown: Q) -> dict[str, Message]:
    rows = Message.objects.filter(shown, message_id__in=set(filter(None, message_ids)))
    return {row.message_id: row for row in rows.defer("tables", "own_text", "source")}


# --- Views ---


@require_safe
def lab(request: HttpRequest) -> HttpResponse:
    """Show the requests that wait for the lab, the overdue ones first."""
    rows, cut = work_list(timezone.now())
    return render(request, "lab.html", {"rows": rows, "cut": cut})


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one job: the mail that asks, the mail with its patch, what was measured, and what became of it.

    What was asked in a private mail is for operators.
    """
    job = get_object_or_404(LabJob.objects.select_related("report__culprit"), pk=pk)
    shown, named = shown_messages(request.user), (job.asked_in, job.patch_mail)
    mails = _mails(named, shown)
    private = Message.objects.filter(message_id__in=named).exclude(pk__in=[mail.pk for mail in mails.values()])
    context = {"asking": mails.get(job.asked_in), "patch": mails.get(job.patch_mail), "private": private.exists()}
    return render(request, "lab_job.html", {**context, "job": job, "measured": measured_metrics(job.payload)})
