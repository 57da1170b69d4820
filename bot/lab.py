"""What people ask the lab to test: the patch, the job for a runner, and its result.

A job is opened for each request the lab must answer, with its patch and base; those that nobody waits for are
withdrawn. A patch that applies to none of its possible bases in a followed tree ends its job at once.

The patch is in the mail that asks, linked or named there, in its parent mail, or the candidate fix. Only stored mail
is read; what is not stored is named, so that a runner can fetch it with b4.

A runner hands in a result (perf-job-result/1). It is stored as received, with the event from which the report's state
follows.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Q

from bot.git import inspection
from bot.mail.authentication import AuthVerdict, Trust
from bot.mail.message import ParsedMail, is_message_id
from bot.mail.message import parse as message_parse
from bot.mail.patches import find_diffs, find_links, find_patches, is_answer, posted_title
from bot.mail.quoting import above_older_mail, own_text, unquoted_lines
from bot.mail.settings import BotSettings
from bot.replies import gate
from bot.replies.reading import understand
from bot.results.formats.checks import Schema
from bot.results.values import RejectedInput
from tracker.domain.events import EventData, EventKind, Grade, Role
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


# --- Requested patches ---

MOST_PARTS = 200  # of a series
_BASE = re.compile(r"^base-commit: ([0-9a-f]{40})\s*$", re.M)
_SERIES = re.compile(r"\[[^\]]{0,80}?\b0*(\d{1,3})/0*(\d{1,3})\]")
_BRANCH = re.compile(r"(?:^|\s)((?:git|https)://[\w.:/~+-]{4,200}?(?:\.git|/linux))/?[ \t]+([\w][\w./-]{0,120})", re.M)


@dataclass(frozen=True, slots=True)
class RequestedPatch:
    """A patch: its text, "" if it is not stored here; the mail that has it, its title, the commit that it names as its
    base, and whether it is one of a series. Or else a branch: "https://git.example.org/linux.git topic".
    """

    text: str = ""
    message_id: str = ""
    title: str = ""
    base: str = ""
    in_series: bool = False
    branch: str = ""


NONE = RequestedPatch()


def requested_patch(message_id: str, candidate: str = "") -> RequestedPatch:
    """Return the patch that a mail asks to test. `candidate`: the mail with the newest candidate fix of the report."""
    asking = _stored(message_id)
    patch = next(_candidates(asking, message_id), NONE) if asking else NONE
    if patch is NONE and candidate and candidate != message_id:
        posting = _stored(candidate)
        patch = patch_of(posting) if posting else RequestedPatch(message_id=candidate)
    return patch


def patch_of(mail: ParsedMail) -> RequestedPatch:
    """Return the patch in a mail, verbatim; NONE without one. Of alternatives in one mail, the first.

    What stands below "Original Message" is somebody else's.
    """
    texts = [above_older_mail(mail.text), *(attachment.text for attachment in mail.attachments)]
    diffs = [diff for text in texts for diff in find_diffs(text)]
    series = _SERIES.search(mail.subject)
    if not diffs:
        is_cover = bool(series and int(series[1]) == 0 and not is_answer(mail.subject))
        return RequestedPatch("", mail.message_id, posted_title(mail.subject), in_series=True) if is_cover else NONE
    files: set[str] = set()
    together = ""
    for diff in diffs:
        changed = set(re.findall(r"^(?:\+\+\+|---) (?:[ab]/)?(\S+)", diff, re.M)) - {"/dev/null"}
        if changed & files:  # a second diff for the same file is another proposal
            break
        files |= changed
        together += diff
    base = next((match[1] for text in texts if (match := _BASE.search(text))), "")
    named = find_patches(unquoted_lines(mail.text), mail.subject, mail.attachments)
    title = posted_title(mail.subject) or next((patch.title for patch in named if patch.title), "")
    return RequestedPatch(together, mail.message_id, title, base, bool(series and int(series[2]) > 1))


def series_text(mail: ParsedMail) -> str:
    """Return the whole series that a mail is a part or the cover letter of, in order; "" if a part is not stored."""
    series = _SERIES.search(mail.subject)
    if not series or is_answer(mail.subject):
        return ""
    total, cover = int(series[2]), mail.message_id if int(series[1]) == 0 else mail.parent
    rows = Message.objects.filter(Q(in_reply_to=cover) | Q(message_id=cover)).exclude(in_reply_to="", message_id="")
    texts: dict[int, str] = {}
    for row in rows.select_related("source").defer("tables", "own_text").order_by("sent_at", "pk")[:MOST_PARTS]:
        part = message_parse(row.source.raw)
        number = _SERIES.search(part.subject)
        if number and int(number[2]) == total and int(number[1]) and not is_answer(part.subject):
            texts.setdefault(int(number[1]), patch_of(part).text)
    return "".join(texts[n] for n in sorted(texts)) if len(texts) == total and all(texts.values()) else ""


def stored_patch(message_id: str) -> RequestedPatch:
    """Return the patch in a mail that is stored here; NONE without one."""
    mail = _stored(message_id) if message_id else None
    return patch_of(mail) if mail else NONE


def _candidates(mail: ParsedMail, message_id: str) -> Iterator[RequestedPatch]:
    """Yield what a mail may mean by "this patch", the likeliest first."""
    if (own := patch_of(mail)) is not NONE:
        yield own
    text = own_text(mail.text)
    links = [link.message_id for link in find_links(text) if link.message_id and is_message_id(link.message_id)]
    for message_id in links:
        if (patch := stored_patch(message_id)) is not NONE:
            yield patch
    if branch := _branch_in(mail):
        yield RequestedPatch(branch=branch)
    for parent in mail.in_reply_to[:1]:
        if (patch := stored_patch(parent)) is not NONE:
            yield patch
    for message_id in links:
        if not Message.objects.filter(message_id=message_id).exists():
            yield RequestedPatch(message_id=message_id)


def _branch_in(mail: ParsedMail) -> str:
    """Return the tree and the branch that a mail names, or ""."""
    branch = _BRANCH.search(own_text(mail.text))
    return f"{branch[1]} {branch[2].rstrip('.')}" if branch else ""


def _stored(message_id: str) -> ParsedMail | None:
    row = Message.objects.filter(message_id=message_id).select_related("source").defer("tables", "own_text").first()
    return message_parse(row.source.raw) if row else None


# --- Recording ---

_MEASURED = {
    Grade.IMPROVEMENT: EventKind.FIX_CONFIRMED,
    Grade.NOT_SIGNIFICANT: EventKind.FIX_WITHOUT_EFFECT,
    Grade.REGRESSION: EventKind.FIX_WITHOUT_EFFECT,
}


def record_result(job: LabJob, result: JobResult, payload: str, now: datetime) -> bool:
    """Record what a runner handed in; False if its lease is lost. Raises RejectedInput if the metric is missing."""
    kind = EventKind.FIX_FAILED
    if result.outcome is JobOutcome.MEASURED:
        head = headline(job)
        measured = result.of_metric(head.metric.name)
        if measured is None:
            raise RejectedInput("result, /measurements", f"expected the metric {head.metric.name!r} among them")
        kind = _MEASURED.get(grade(measured, head.metric.direction).verdict, EventKind.ANSWERED)
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

    A patch that applies to none of its possible bases in a followed tree ends its job at once.
    """
    owed_reports = lab_jobs.owed_reports(MOST)
    owed = {
        (owed_report.report.pk, pending.event.key): (owed_report, pending)
        for owed_report in owed_reports
        for pending in owed_report.pending_requests
    }
    lab_jobs.withdraw_all_but(owed.keys(), UNFINISHED if len(owed_reports) < MOST else ())
    rows = LabJob.objects.filter(report__in=[owed_report.report for owed_report in owed_reports])
    known_keys = set(rows.values_list("report", "event_key"))
    joined = rows.filter(state__in=UNFINISHED).values_list("report", "joined")
    joined_keys = {(report, key) for report, keys in joined for key in keys}
    opened = 0
    for key, (owed_report, pending) in owed.items():
        if key not in known_keys | joined_keys:
            events = [event.value() for event in owed_report.events]
            opened += _try_open(owed_report.report, pending, events, settings, trees, now)
    lab_jobs.reopen(known_keys & owed.keys())
    return opened


def _try_open(
    report: Report,
    pending: PendingRequest,
    events: Sequence[EventData],
    settings: BotSettings,
    trees: Sequence[Path],
    now: datetime,
) -> bool:
    """Open one job; a mail or a tree that can't be read keeps no other from being opened."""
    try:
        candidate = _candidate(events, pending.event)
        patch = requested_patch(pending.event.message_id, candidate) if pending.request in _WITH_PATCH else NONE
        proven = _may_be_run(report, pending.event, patch, events, settings)
        if job := _job_for_the_same(report, patch):
            with transaction.atomic():
                _answer_if_it_does_not_apply(lab_jobs.join(job, pending.event.key, proven=proven), now)
            return False  # somebody else asked for it, too: it is tested once, and both are answered
        check = inspection.ApplyCheck()
        if patch.text and not patch.in_series:  # the other patches of a series come first
            # At the commit that it names, at the culprit, or at the head of the tree
            check = inspection.check(trees, [base for base in (patch.base, report.culprit.sha) if base], patch.text)
        # A runner that has the commit may test what applies nowhere here.
        elsewhere = patch.base in check.missing and not check.base
        applies = bool(check.base) if check.known and not elsewhere else None
        refused = check.error if applies is False else ""
        with transaction.atomic():
            job = lab_jobs.open_job(
                report,
                pending,
                now,
                asked_in=pending.event.message_id,
                proven=proven,
                title=patch.title[:500],
                patch_mail=patch.message_id,
                in_series=patch.in_series,
                branch=patch.branch,
                base=check.base or patch.base,
                applies=applies,
                detail=f"its base {patch.base[:12]} is in none of the followed trees" if elsewhere else refused,
            )
            if job:
                _answer_if_it_does_not_apply(job, now)
            return job is not None
    except Exception:  # bad mail, or a broken tree
        log.exception("%s: the job for %s could not be opened", report.culprit.sha10, pending.event.key)
        return False


def _answer_if_it_does_not_apply(job: LabJob, now: datetime) -> None:
    """A stranger's patch is not answered, and a report gets such an answer once a day."""
    if job.applies is False and job.proven and not lab_jobs.answered_lately(job.report, now):
        record_outcome(job, JobOutcome.NOT_APPLIED, job.detail, now)


def _job_for_the_same(report: Report, patch: RequestedPatch) -> LabJob | None:
    """Return the unfinished job of a report that tests the same patch or branch, if there is one."""
    if not (patch.message_id or patch.branch):
        return None
    same = lab_jobs.unfinished().filter(report=report, patch_mail=patch.message_id, branch=patch.branch)
    return (same.filter(base__in=("", patch.base)) if patch.branch else same).first()


def _may_be_run(
    report: Report, event: EventData, patch: RequestedPatch, events: Sequence[EventData], settings: BotSettings
) -> bool:
    """Whether the gate lets any runner of the lab test a patch: if people of the report signed the mail that asks and
    the one that has the patch, or a person here vouches for exactly these mails.
    """
    named = {message_id for message_id in (event.message_id, patch.message_id) if message_id}
    signed = Message.objects.filter(message_id__in=named, trust=AuthVerdict.PASS)
    people = report.verified_authors | report.verified_maintainers
    proven = {
        row.message_id
        for row in signed.select_related("source").defer("own_text", "tables")
        if (settings.aliases.of(row.author_email) & people or settings.speaks_for_lab(row.author_email))
        and _is_surely_asked(row, patch, settings)
    }
    vouched = {entry.message_id for entry in effective_events(list(events)) if entry.actor}
    standing = gate.Standing(role=event.role)
    if named <= proven | vouched and (named or event.actor):
        standing = gate.Standing(Trust(AuthVerdict.PASS), Role.REPORTER)
    return bool(gate.permitted(gate.Caused.JOB, standing, settings.trust_policy))


def _is_surely_asked(row: Message, patch: RequestedPatch, settings: BotSettings) -> bool:
    """Whether a signed mail has the same patch, or the same branch, however it is read, and above all that may be an
    older mail (reading.py).
    """
    reading = understand(row.source.raw, settings)
    if reading.others is None:
        return False
    variants = [reading, *reading.others, *([reading.undoubted] if reading.undoubted else [])]
    if row.message_id == patch.message_id:
        return len({patch_of(variant.mail).text for variant in variants}) == 1
    return not patch.branch or all(_branch_in(variant.mail) == patch.branch for variant in variants)


def _candidate(events: Sequence[EventData], request: EventData) -> str:
    """Return the mail with the newest candidate fix at the time of a request, or ""."""
    posted = [
        event
        for event in effective_events(list(events))
        if event.kind is EventKind.FIX_PROPOSED and event.message_id and event.occurred_at <= request.occurred_at
    ]
    return max(posted, key=EventData.order).message_id if posted else ""
