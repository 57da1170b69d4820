"""`/lab/`: what people asked the lab for and have not got yet, the jobs that ended lately, and a page for each job.

The overdue requests come first. The list takes a constant number of queries. Operators cancel a job, let any runner
take it, or have it tested again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.domain.lab_jobs import UNFINISHED, JobOutcome, JobState, PendingRequest, measured_metrics
from tracker.models import LabJob, Message, Report
from tracker.pages.http import cleaned, error_response, permission_required, username
from tracker.services import lab_jobs
from tracker.services.accounts import SEND, shown_messages
from tracker.services.lab_jobs import owed_reports

MOST = 200  # reports, those that have waited longest
ENDED = 20  # jobs


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
    jobs = {(job.report_id, key): job for job in stored for key in (*job.joined, job.event_key)}
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
    """Show the requests that wait for the lab, the overdue ones first, and the jobs that ended lately."""
    rows, cut = work_list(timezone.now())
    done = lab_jobs.with_privacy(LabJob.objects.filter(state=JobState.DONE)).select_related("report__culprit")
    ended = list(done.defer("payload").order_by("-finished_at", "-pk")[:ENDED])
    return render(request, "lab.html", {"rows": rows, "cut": cut, "ended": ended})


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one job: the mail that asks, the mail with its patch, what was measured, and what became of it.

    What was asked in a private mail is for operators.
    """
    job = get_object_or_404(LabJob.objects.select_related("report__culprit"), pk=pk)
    shown, named = shown_messages(request.user), (job.asked_in, job.patch_mail, *job.patch_parts)
    mails = _mails(named, shown)
    private = Message.objects.filter(message_id__in=named).exclude(pk__in=[mail.pk for mail in mails.values()])
    unfinished = job.state in UNFINISHED
    context = {
        "job": job,
        "asking": mails.get(job.asked_in),
        "patch": mails.get(job.patch_mail),
        "private": private.exists(),
        "measured": measured_metrics(job.payload),
        "may_act": request.user.has_perm(SEND),
        "may_cancel": unfinished,
        "may_allow": unfinished and not job.proven and bool(job.patch_digest or (job.branch and not job.patch_mail)),
        "may_retry": unfinished or (job.state == JobState.DONE and job.outcome != JobOutcome.MEASURED),
    }
    return render(request, "lab_job.html", context)


@require_POST
@permission_required(SEND, "only operators can act on the lab's jobs")
def act(request: HttpRequest, pk: int) -> HttpResponse:
    """Act on a job: `do` cancel (with a `reason`, told to the thread if `notify_thread`), allow or retry."""
    command, person, now = request.POST.get("do", ""), username(request), timezone.now()
    reason = " ".join(cleaned(request.POST, "reason").split())
    match command:
        case "cancel" if not reason:
            return error_response("reason: say why, for those who asked; nothing was changed")
        case "cancel":
            notify_thread = "notify_thread" in request.POST
            done = lab_jobs.cancel(pk, person, reason, now, notify_thread=notify_thread)
        case "allow":
            done = lab_jobs.allow(pk, person)
        case "retry":
            done = lab_jobs.retry(pk, person, now)
        case _:
            return error_response(f"do: expected cancel, allow or retry; found {command[:40]!r}")
    said = {"cancel": "Cancelled.", "allow": "Any runner may take it now.", "retry": "Offered to runners again."}
    messages.info(request, said[command] if done else "Nothing was changed: the job is in another state by now.")
    return redirect("lab-job", pk)
