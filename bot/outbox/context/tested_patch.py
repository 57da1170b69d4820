"""A finished job as input for the answer to who asked for it."""

from __future__ import annotations

from dataclasses import replace

from bot.compose.follow_ups.tested_mail import TestedPatch
from bot.compose.follow_ups.thread_mail import ThreadData
from bot.lab.job_result import stored
from bot.lab.recording import headline
from bot.mail.addresses import Address
from bot.mail.auth.verdict import AuthVerdict
from bot.outbox.context.patch_mail import ancestors
from bot.outbox.context.report_context import ReportContext
from bot.outbox.context.report_loader import remeasured_finding
from tracker.domain.events import EventData
from tracker.domain.lab.jobs import SENTENCES, JobOutcome
from tracker.models import LabJob, Message

_PREFIX = "job/"


def tested_patch(context: ReportContext, event: EventData) -> tuple[ThreadData, TestedPatch] | None:
    """Return the thread of the mail that asked, and what came of it; None if the event is of no job."""
    number = event.result.removeprefix(_PREFIX)
    if not event.result.startswith(_PREFIX) or not number.isdecimal():
        return None
    job = LabJob.objects.select_related("report").filter(pk=number, report=context.report).first()
    if job is None:
        return None
    asking = Message.objects.filter(message_id=job.asked_in).defer("tables", "own_text", "source").first()
    result = stored(job.payload) if job.payload else None
    head = headline(job)
    measured = result.of_metric(head.metric.name) if result else None
    base = (result.base if result else "") or job.base[:12]
    why = SENTENCES.get(JobOutcome(job.outcome), "").format(base=base or "the culprit")
    tested = TestedPatch(
        title=job.title,
        base=base,
        asked_by=_person(context, asking),
        measured=remeasured_finding(measured, head) if measured else None,
        why=why,
        detail=job.detail,
        applies=job.outcome != JobOutcome.NOT_APPLIED,
    )
    return _thread(context.thread, asking), tested


def _thread(thread: ThreadData, asking: Message | None) -> ThreadData:
    if asking is None:
        return thread
    above = ancestors(asking.message_id)
    subject = asking.subject.removeprefix("Re: ")
    return replace(thread, message_id=asking.message_id, references=above, subject=subject)


def _person(context: ReportContext, asking: Message | None) -> Address | None:
    """Return who asked; None if nothing proves it and we never wrote to them."""
    if asking is None:
        return None
    known = context.report.verified_authors | context.report.verified_recipients
    proven = asking.trust == AuthVerdict.PASS or asking.author_email in known
    return Address(asking.author_name, asking.author_email) if proven else None
