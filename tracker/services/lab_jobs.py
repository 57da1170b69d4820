"""The lab's jobs: the only writer. A runner claims one by a lease, extends it, and hands in one result.

A job ends once: with a result, because its patch does not apply, or because somebody here cancels it. Its end is an
event of its report, which answers everybody who asked for the same. Who undoes that event opens the job again.
"""

import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from tracker.domain.events import OPEN, Awaited, EventData, EventKind, ReportedBy, Role, State, Verdict
from tracker.domain.lab_jobs import UNFINISHED, JobOutcome, JobState, PendingRequest, requests_pending
from tracker.domain.report_state import effective_events, fold
from tracker.models import Event, Finding, LabJob, Message, Report
from tracker.models.reports import NEWS
from tracker.services import event_log, report_actions

MOST_ATTEMPTS = 3  # a job whose runners died so often waits for a person
MOST_ANSWERS = 5  # a day that the patches for a report do not apply
NOT_TAKEN_FOR = timedelta(hours=24)  # after which operators are told
_FREE = {"state": JobState.WAITING, "runner": "", "lease_token": "", "lease_until": None}
_AGAIN = _FREE | {"attempts": 0, "outcome": "", "detail": "", "payload": "", "finished_at": None}
_AGAIN |= {"applies": None, "patch_digest": ""}  # it is checked again, too


def is_private(job: LabJob) -> bool:
    """Whether only operators may see the words of a job: it was asked for, or its patch posted, in a private mail."""
    mails = (job.asked_in, job.patch_mail, *job.patch_parts)
    return Message.objects.filter(message_id__in=mails, public=False).exists()


def with_privacy(rows: QuerySet[LabJob]) -> QuerySet[LabJob]:
    """Annotate jobs with `private`, as `is_private` returns it; for the parts of a series, as of the last check."""
    mails = Q(message_id=OuterRef("asked_in")) | Q(message_id=OuterRef("patch_mail"))
    is_private = Q(Exists(Message.objects.filter(mails, public=False))) | Q(parts_private=True)
    return rows.annotate(private=ExpressionWrapper(is_private, output_field=BooleanField()))


@dataclass(frozen=True, slots=True)
class OwedReport:
    """A report that waits for the lab: its events, and what the lab owes there."""

    report: Report
    events: Sequence[Event]
    pending_requests: Sequence[PendingRequest]


def owed_reports(most: int) -> list[OwedReport]:
    """Return the reports that wait for the lab, those that have waited longest, in two queries.

    With them those that wait for somebody else since one of several jobs ended. What is asked of a person who reported
    something is not a job of the lab, until the lab has measured it, too.
    """
    has_jobs = Exists(LabJob.objects.filter(report=OuterRef("pk"), state__in=UNFINISHED))
    of_lab = Q(reported_by=ReportedBy.ROBOT) | Q(results__isnull=False)
    # What was not mailed yet waits for the lab, too, but not for a measurement
    asked = Q(awaited=Awaited.REPORTER) & (Q(reported_at__isnull=False) | ~Q(state=State.NO_RESPONSE))
    waiting = Report.objects.filter(asked | has_jobs, of_lab, state__in=sorted(OPEN)).distinct()
    reports = list(waiting.select_related("culprit").order_by("changed_at", "pk")[:most])
    events = event_log.events_of(report.pk for report in reports)
    values = {pk: [event.value() for event in own] for pk, own in events.items()}
    return [
        OwedReport(report, events[report.pk], requests_pending(Verdict(report.verdict), values[report.pk]))
        for report in reports
    ]


def open_job(report: Report, pending: PendingRequest, now: datetime, **columns: Any) -> LabJob | None:
    """Open the job for a request; None if there is one already."""
    job, created = LabJob.objects.get_or_create(
        report=report,
        event_key=pending.event.key,
        defaults={"request": pending.request, "due_at": pending.due_at, "opened_at": now, **columns},
    )
    return job if created else None


def join(job: LabJob, event_key: str, *, proven: bool) -> LabJob | None:
    """Let an unfinished job answer another request, too, and return it; None if it has ended meanwhile, or has another
    patch. `proven`: whether that request alone lets any runner take it.
    """
    rows = unfinished().filter(pk=job.pk, patch_digest=job.patch_digest, base=job.base)
    row = rows.select_for_update(of=("self",)).first()
    if row is None:
        return None
    row.joined = sorted({*row.joined, event_key})
    row.proven |= proven
    row.save(update_fields=["joined", "proven"])
    return row


def _is_owed(owed: Collection[tuple[int, str]], job: LabJob) -> bool:
    """Whether one of the requests that a job answers is among those that are owed (report and event key)."""
    return any((job.report_id, key) in owed for key in job.requests)


def withdraw_all_but(owed: Collection[tuple[int, str]], states: Sequence[JobState]) -> int:
    """Withdraw the jobs in these states of whose requests none is in `owed` (report and event key); return how many."""
    rows = LabJob.objects.filter(state__in=states).only("report", "event_key", "joined")
    gone = [job.pk for job in rows if not _is_owed(owed, job)]
    return LabJob.objects.filter(pk__in=gone, state__in=states).update(state=JobState.WITHDRAWN, finished_at=Now())


def reopen(owed: Collection[tuple[int, str]]) -> int:
    """Open ended jobs again of whose requests one is owed after all, as after an undo; return how many."""
    ended = LabJob.objects.filter(state__in=(JobState.WITHDRAWN, JobState.DONE))
    rows = ended.filter(report__in={report for report, _ in owed}).only("report", "event_key", "joined")
    back = [job.pk for job in rows if _is_owed(owed, job)]
    return ended.filter(pk__in=back).update(**_AGAIN)


def requests_with_jobs(reports: Iterable[Report]) -> set[tuple[int, str]]:
    """Return the requests of some reports that have a job or joined one: report and event key of each."""
    rows = LabJob.objects.filter(report__in=list(reports)).values_list("report", "event_key", "joined", "state")
    joined = {(report, key) for report, _, keys, state in rows if state in UNFINISHED for key in keys}
    return {(report, key) for report, key, _, _ in rows} | joined


def unchecked() -> QuerySet[LabJob]:
    """Return the unfinished jobs whose patch has not been seen whole, or is to be checked again."""
    rows = unfinished().filter(patch_digest="").exclude(patch_mail="")
    return rows.filter(Exists(Message.objects.filter(message_id=OuterRef("patch_mail")))).select_related("report")


def refused() -> QuerySet[LabJob]:
    """Return the waiting jobs whose patch does not apply, and of which nobody has been told yet."""
    rows = LabJob.objects.filter(state=JobState.WAITING, applies=False, proven=True)
    return rows.select_related("report__culprit").order_by("opened_at", "pk")


def correct(job: LabJob, columns: dict[str, Any]) -> LabJob:
    """Set what is known of an unfinished job's patch, and return the job as it is then."""
    unfinished().filter(pk=job.pk).update(**columns)
    job.refresh_from_db()
    return job


# --- What people here do to a job ---


@transaction.atomic
def retry(pk: int, person: str, now: datetime) -> bool:
    """Offer a job to runners again: an unfinished one, however many did not come back, or one that ended without a
    measurement, whose event is undone. False if it is neither.
    """
    if unfinished().filter(pk=pk).update(**_FREE, attempts=0):
        return True
    ended = LabJob.objects.filter(pk=pk, state=JobState.DONE).exclude(outcome=JobOutcome.MEASURED)
    job = ended.select_related("report").first()
    if job is None or not ended.update(**_AGAIN):
        return False
    for key in list(job.report.events.filter(result=job.name).values_list("key", flat=True)):
        report_actions.reverse_event([job.report_id], key, person, now, lambda report: Role.REPORTER, of_others=True)
    return True


def allow(pk: int, person: str) -> bool:
    """Let any runner take a job although nothing proves who asks: somebody here has looked at its patch, which must be
    here whole, or at the name of its branch. False if there is nothing to allow.
    """
    to_see = ~Q(patch_digest="") | (Q(patch_mail="") & ~Q(branch=""))
    return bool(unfinished().filter(to_see, pk=pk, proven=False).update(proven=True, allowed_by=person))


@transaction.atomic
def cancel(pk: int, person: str, reason: str, now: datetime, *, notify_thread: bool) -> bool:
    """End an unfinished job without a result; a runner that has it is told by its next request. Returns False if it has
    ended already.
    """
    columns = {"outcome": JobOutcome.CANCELLED, "detail": reason[:1000], "finished_at": now, "lease_until": None}
    if not unfinished().filter(pk=pk).update(state=JobState.DONE, **columns):
        return False
    job = LabJob.objects.select_related("report").get(pk=pk)
    record_end(job, EventKind.ANSWERED, now, quote=reason, person=person, notify_thread=notify_thread)
    return True


def not_taken(now: datetime) -> QuerySet[LabJob]:
    """Return the jobs that have waited for a runner, or for a click, for more than a day, whether or not one came by.

    Without those whose patch does not apply, and the questions, which are for people.
    """
    running = Q(state=JobState.CLAIMED, lease_until__gte=now)
    rows = unfinished().filter(opened_at__lt=now - NOT_TAKEN_FOR).exclude(running).exclude(applies=False)
    return rows.exclude(patch_mail="", branch="")


# --- Runners ---


def answered_enough(report: Report, now: datetime) -> bool:
    """Whether as many patches for a report were answered within a day, without any runner, as one gets answers."""
    done = LabJob.objects.filter(report=report, outcome=JobOutcome.NOT_APPLIED, finished_at__gt=now - timedelta(days=1))
    return done.count() >= MOST_ANSWERS


def claimable(now: datetime, machines: Sequence[str] = (), *, unproven: bool = False) -> QuerySet[LabJob]:
    """Return the jobs that a runner may take now: with a patch that may apply, the most urgent first.

    `machines`: those of the runner, empty for any; `unproven`: also those that somebody asked for whom nothing proves.
    """
    free = Q(state=JobState.WAITING) | Q(state=JobState.CLAIMED, lease_until__lt=now)
    rows = LabJob.objects.filter(free, attempts__lt=MOST_ATTEMPTS).exclude(applies=False)
    # A series waits for its parts, and what was not looked at waits
    is_here = Exists(Message.objects.filter(message_id=OuterRef("patch_mail")))
    rows = rows.exclude(is_here, patch_digest="")
    rows = rows.exclude(patch_mail="", branch="").filter(Exists(Finding.objects.filter(report=OuterRef("report"))))
    if machines:
        rows = rows.filter(report__machine__in=machines)
    return (rows if unproven else rows.filter(proven=True)).order_by("due_at", "pk")


def claim(rows: QuerySet[LabJob], runner: str, now: datetime, lease: timedelta) -> LabJob | None:
    """Claim the first of some claimable jobs; None if there is none. Of two runners, one gets it."""
    for pk in rows.values_list("pk", flat=True)[:20]:
        hold = {"runner": runner, "lease_token": secrets.token_hex(16), "lease_until": now + lease}
        job = rows.order_by().filter(pk=pk)
        if job.update(state=JobState.CLAIMED, attempts=F("attempts") + 1, **hold):
            return LabJob.objects.select_related("report__culprit").get(pk=pk)
    return None


def distrust(job: LabJob) -> None:
    """Give back a claimed job whose patch is no longer the one that was looked at or proven."""
    detail = "its patch is no longer the one that was looked at"
    _held(job.pk, job.lease_token).update(
        **_FREE, attempts=F("attempts") - 1, proven=False, allowed_by="", patch_digest="", detail=detail
    )


def extend(pk: int, token: str, now: datetime, lease: timedelta) -> bool:
    """Extend the lease of a claimed job; False if it is lost, or if nobody waits for the job any more."""
    return bool(_held(pk, token).filter(lease_until__gte=now).update(lease_until=now + lease))


def release(pk: int, token: str) -> bool:
    """Give a claimed job back, for another runner; False if the lease is lost."""
    return bool(_held(pk, token).update(**_FREE, attempts=F("attempts") - 1))


def finish(job: LabJob, outcome: JobOutcome, detail: str, now: datetime, payload: str = "", token: str = "") -> bool:
    """End a job, once: by the runner that holds it, or without a token by ourselves. Returns False if it is lost.

    A result that comes late is taken as long as no other runner has claimed the job.
    """
    rows = _held(job.pk, token) if token else LabJob.objects.filter(pk=job.pk, state=JobState.WAITING)
    columns = {"outcome": outcome, "detail": detail[:1000], "payload": payload, "finished_at": now}
    if not rows.update(state=JobState.DONE, lease_until=None, **columns):
        return False
    job.refresh_from_db()
    return True


def record_end(
    job: LabJob,
    kind: EventKind,
    now: datetime,
    *,
    remark: str = "",
    quote: str = "",
    person: str = "",
    notify_thread: bool = True,
) -> None:
    """Add the event of a job's end, or, if the report would still await the lab after it, one that the lab answered;
    and one for each request that the job answers besides its own. `quote`: numbers, or what went wrong.
    """
    report = job.report
    events = [entry.value() for entry in report.events.all()]
    keys = {event.key for event in events}
    title = "" if is_private(job) else job.title

    def end(kind: EventKind, in_reply_to: str, key: str) -> EventData:
        # A job that was opened again has an event of that key already, which somebody undid.
        key = f"{key}:{now:%Y%m%dT%H%M%S%f}" if key in keys else key
        return EventData(
            key, kind, now, actor=person, result=job.name, title=title, remark=remark, in_reply_to=in_reply_to
        )

    reply_to = job.patch_mail or job.asked_in
    event = end(kind, reply_to, f"{kind}:{job.name}")
    if fold(Verdict(report.verdict), [*events, event]).awaited is Awaited.REPORTER:
        event = end(EventKind.ANSWERED, reply_to, f"{EventKind.ANSWERED}:{job.name}")
    row = event_log.event_row(report, event, now, quote)
    row.notify_thread = notify_thread and event.kind not in NEWS  # those are mailed anyway
    asked = [other for other in effective_events(events) if other.key in job.joined]
    also = [
        end(EventKind.ANSWERED, other.message_id, f"{EventKind.ANSWERED}:{job.name}:{number}")
        for number, other in enumerate(asked, start=1)
    ]
    event_log.record([row, *(event_log.event_row(report, answer, now, quote) for answer in also)])


def _held(pk: int, token: str) -> QuerySet[LabJob]:
    return LabJob.objects.filter(pk=pk, lease_token=token, state=JobState.CLAIMED).exclude(lease_token="")


def unfinished() -> QuerySet[LabJob]:
    """Return the jobs that wait, or that a runner has."""
    return LabJob.objects.filter(state__in=UNFINISHED)
