"""What people ask the lab to test: the patch, the job for a runner, and its result.

The patch is in the mail that asks, linked or named there, in its parent mail, or the candidate fix. Only stored mail
is read; what is not stored is named, so that a runner can fetch it with b4. Any mail of a series stands for the whole
of it, its parts in order. As b4 does, the parts are those of one writer, version and number of parts in one thread; a
part that is not here is named, and the series waits for it.

A job is opened for each request the lab must answer, with its patch and base; those that nobody waits for are
withdrawn. A patch that applies to none of its possible bases in a followed tree ends its job at once.

A runner hands in a result (perf-job-result/1). It is stored as received, with the event from which the report's state
follows.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Q

from bot.git import inspection
from bot.mail.authentication import AuthVerdict, Trust
from bot.mail.message import ParsedMail, is_message_id
from bot.mail.message import parse as parse_mail
from bot.mail.patches import (
    SUBJECT_LINE,
    find_diffs,
    find_links,
    find_patches,
    is_answer,
    posted_title,
    ref_in,
    version_of,
)
from bot.mail.quoting import above_older_mail, own_text, unquoted_lines
from bot.mail.settings import BotSettings
from bot.replies import gate
from bot.replies.commands import Word
from bot.replies.reading import Reading, understand
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

log = logging.getLogger(__name__)

# --- Which patch, series or branch a mail asks to test ---

MOST_PARTS = 200  # of a series
MOST_BYTES = 4 << 20  # of its mails: parsing them takes a second
_MOST_STEPS = 20  # from one mail of a series to the next


@dataclass(frozen=True, slots=True)
class RequestedPatch:
    """A patch or series: its text, "" if it is not stored here; the mail that has it, of a series its cover letter or
    first part; its title, and the commit that it names as its base. Or else a branch: "https://git.example.org/linux.git
    topic", or a commit alone.

    `parts`: the mails that the text is from, in order; `in_series`: whether they are a series, and `missing`, which of
    its parts is not here, in words.
    """

    text: str = ""
    message_id: str = ""
    title: str = ""
    base: str = ""
    branch: str = ""
    parts: tuple[str, ...] = ()
    in_series: bool = False
    missing: str = ""

    @property
    def digest(self) -> str:
        """Identifies the text, so that what was looked at is what runs; "" without one."""
        return digest_of(self.text)

    @property
    def mails(self) -> frozenset[str]:
        """The mails whose writers answer for the patch: those that its text is from, or the one that is named."""
        return frozenset(self.parts) or frozenset({self.message_id} if self.message_id else ())


NONE = RequestedPatch()


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if text else ""


def text_of(parts: Iterable[str]) -> str:
    """Return the text of a patch from the mails that it is from; "" if one of them is not here, or has none by now."""
    texts = [patch_of(mail).text if (mail := _stored(part)) else "" for part in parts]
    return "".join(texts) if all(texts) else ""


def requested_patch(message_id: str, candidate: str = "", argument: str = "", culprit: str = "") -> RequestedPatch:
    """Return the patch that a mail asks to test. `candidate`: the mail with the newest candidate fix of the report;
    `argument`: what stands behind the command, if one asks; `culprit`: the report's, which is not meant.
    """
    asking = _stored(message_id)
    if asking is None:
        patch = NONE
    else:
        named = _named_in(argument, culprit) if argument else ()
        patch = next((meant for meant in (*named, *_possible_patches(asking, culprit)) if meant != NONE), NONE)
    if patch == NONE and candidate and candidate != message_id:
        return stored_patch(candidate, RequestedPatch(message_id=candidate))
    return patch


def stored_patch(message_id: str, without: RequestedPatch = NONE) -> RequestedPatch:
    """Return the patch or series in a mail; `without` one if the mail is not stored here."""
    mail = _stored(message_id) if message_id else None
    return series_of(mail) or patch_of(mail) if mail else without


def patch_of(mail: ParsedMail) -> RequestedPatch:
    """Return the patch in a mail, verbatim; NONE without one. Of alternatives in one mail, the first; of attached parts
    of a series, all.

    What stands below "Original Message" is somebody else's.
    """
    texts = _texts(mail)
    numbers = [number for text in texts if (number := _attached_number(text))]
    is_series = len(numbers) > 1 and len(numbers) == len({*numbers})
    diffs = [diff for text in texts for diff in find_diffs(text)]
    if not diffs:
        return NONE
    files: set[str] = set()
    together = ""
    for diff in diffs:
        changed = set(re.findall(r"^(?:\+\+\+|---) (?:[ab]/)?(\S+)", diff, re.M)) - {"/dev/null"}
        if changed & files and not is_series:  # a second diff for the same file is another proposal
            break
        files |= changed
        together += diff
    named = find_patches(unquoted_lines(mail.text), mail.subject, mail.attachments)
    title = posted_title(mail.subject) or next((patch.title for patch in named if patch.title), "")
    return RequestedPatch(together, mail.message_id, title, _base_in(texts), parts=(mail.message_id,))


# --- Series ---

# "[PATCH v2 1/3]" as git writes it; others have "[PATCH 1/3 net-next]", "[PATCH 1 of 3]" or "[PATCH] (1/3)".
_PLACE = re.compile(r"\[[^\]]{0,80}?(?:\b|(?<=PATCH))0*(\d{1,3})/0*(\d{1,3})\]")
_PLACE_BY_HAND = re.compile(
    r"\[[^\]]{0,80}?(?:(?<![\w.])|(?<=PATCH)|\] ?\()0*(\d{1,3}) ?(?:/|of) ?0*(\d{1,3})(?:(?![\w.])[^\]]{0,80}\]|\))",
    re.I,
)
_HEAD = 4000  # characters of an attached patch that hold its subject
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def series_of(mail: ParsedMail) -> RequestedPatch | None:
    """Return the series that a mail is a part or the cover letter of; None if it is neither."""
    place = _place(mail.subject)
    if place is None or place[2] < 1 or (place[2] == 1 and place[1] == 1):
        return None
    members = _members(mail, place)
    raws = {number: row.source.raw for number, row in members.items()}
    if sum(map(len, raws.values())) > MOST_BYTES:
        missing = f"the series is larger than {MOST_BYTES >> 20} MB"
        return RequestedPatch(message_id=mail.message_id, in_series=True, missing=missing)
    mails = {number: parse_mail(raw) for number, raw in raws.items()}
    mails[place[1]] = mail
    total = place[2]
    patches = {number: patch_of(mails[number]) for number in range(1, total + 1) if number in mails}
    gaps = [number for number in range(1, total + 1) if number not in patches or not patches[number].text]
    first = mails[min(mails)]
    # `git format-patch --base --cover-letter` writes it in the cover letter. That must be as well proven as the parts:
    # only who wrote these answers for what runs.
    proven = {number for number, row in members.items() if row.trust == AuthVerdict.PASS}
    saying = [*sorted(patches), *((0,) if 0 in mails and (0 in proven or not proven) else ())]
    base = next((base for number in saying if (base := _base_in(_texts(mails[number])))), "")
    whole = RequestedPatch(
        message_id=first.message_id,
        title=posted_title(first.subject),
        base=base,
        parts=tuple(mails[number].message_id for number in sorted(patches)),
        in_series=True,
    )
    if gaps:
        return replace(whole, missing=f"part {gaps[0]} of {total} is not here")
    return replace(whole, text="".join(patches[number].text for number in sorted(patches)))


def prefixes(patch: RequestedPatch) -> Iterator[tuple[str, str]]:
    """Yield the name of each part of a series, "part 2 of 3", and the text up to its end."""
    for number in range(1, len(patch.parts) + 1):
        yield f"part {number} of {len(patch.parts)}", text_of(patch.parts[:number])


def _place(subject: str) -> tuple[int, int, int] | None:
    """Return version, number and total of a mail of a series; None for any other, and for an answer to one."""
    match = _PLACE.search(subject) or _PLACE_BY_HAND.search(subject)
    if match is None or is_answer(subject) or int(match[2]) > MOST_PARTS or int(match[1]) > int(match[2]):
        return None
    return version_of(subject), int(match[1]), int(match[2])


def _members(mail: ParsedMail, place: tuple[int, int, int]) -> dict[int, Message]:
    """Return the stored mails of a series by number: of the same writer, version and total, in the same thread.

    Where there are two of a number, one that is signed, else the one that was sent nearest to the given mail.
    """
    version, _, total = place
    own = Message.objects.filter(author_email__iexact=mail.author.email).order_by("pk")
    own = own.only("message_id", "in_reply_to", "subject", "sent_at", "trust")
    thread = {mail.message_id, *mail.in_reply_to[:1]}
    members: dict[str, tuple[int, Message]] = {}
    for _ in range(_MOST_STEPS):
        answers = own.filter(Q(message_id__in=thread) | Q(in_reply_to__in=thread))[: 2 * MOST_PARTS]
        places = [(_place(row.subject), row) for row in answers if row.message_id not in members]
        parts = [(at[1], row) for at, row in places if at and (at[0], at[2]) == (version, total)]
        if not parts:
            break
        members |= {row.message_id: (number, row) for number, row in parts}
        thread = {name for _, row in parts for name in (row.message_id, row.in_reply_to) if name}
    sent = mail.date or _LONG_AGO

    def likeliest(member: tuple[int, Message]) -> tuple[bool, timedelta, int]:
        row = member[1]
        return row.trust != AuthVerdict.PASS, abs((row.sent_at or _LONG_AGO) - sent), row.pk

    numbered: dict[int, int] = {}
    for number, row in sorted(members.values(), key=likeliest):
        numbered.setdefault(number, row.pk)
    rows = Message.objects.select_related("source").defer("tables", "own_text").in_bulk(numbered.values())
    return {number: rows[pk] for number, pk in numbered.items()}


# --- What "this patch" may be ---

_BASE = re.compile(r"^base-commit: ([0-9a-f]{12,40})\s*$", re.M)


def _possible_patches(mail: ParsedMail, culprit: str) -> Iterator[RequestedPatch]:
    """Yield what a mail may mean by "this patch", the likeliest first."""
    if own := series_of(mail):
        yield own
    yield patch_of(mail)
    yield from _named_in(own_text(mail.text), culprit, stored_only=True)
    for parent in mail.in_reply_to[:1]:
        yield stored_patch(parent)
    yield from _named_in(own_text(mail.text), culprit)


def _named_in(text: str, culprit: str, *, stored_only: bool = False) -> Iterator[RequestedPatch]:
    """Yield the patches that are linked, and the branch or commit that is named."""
    links = [link.message_id for link in find_links(text) if link.message_id and is_message_id(link.message_id)]
    yield from map(stored_patch, links)
    if branch := ref_in(text, culprit):
        yield RequestedPatch(branch=branch)
    if not stored_only:
        stored = set(Message.objects.filter(message_id__in=links).values_list("message_id", flat=True))
        yield from (RequestedPatch(message_id=name) for name in links if name not in stored)


def _texts(mail: ParsedMail) -> list[str]:
    attached = sorted((attachment.text for attachment in mail.attachments), key=_attached_number)
    return [above_older_mail(mail.text), *attached]


def _attached_number(text: str) -> int:
    """Return which part of a series an attached patch says it is; 0 if it says nothing."""
    subject = SUBJECT_LINE.search(text[:_HEAD])
    place = _place(" ".join(subject[1].split())) if subject else None
    return place[1] if place else 0


def _base_in(texts: Iterable[str]) -> str:
    return next((match[1] for text in texts if (match := _BASE.search(text))), "")


def _stored(message_id: str) -> ParsedMail | None:
    row = Message.objects.filter(message_id=message_id).select_related("source").defer("tables", "own_text").first()
    return parse_mail(row.source.raw) if row else None


# --- Opening ---

MOST = 500  # reports in a round, those that have waited longest
_WITH_PATCH = (Request.TEST, Request.MEASURE)


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
        pending.event.message_id, _candidate_fix_mail(events, pending.event), argument, culprit=report.culprit.sha
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

    Under the policy `open` nothing need be signed, but the patch is by people of the report all the same, and neither
    mail is disproven.
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
        is_disproven = rows.filter(trust=AuthVerdict.FAIL).exclude(message_id__in=vouched).exists()
        standing = gate.Standing(role=event.role if is_theirs and not is_disproven else Role.THIRD_PARTY)
    return gate.permitted(gate.Caused.JOB, standing, settings.trust_policy)


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
    return not patch.branch or all(patch.branch in _refs_in(variant, row.report.culprit.sha) for variant in variants)


def _refs_in(reading: Reading, culprit: str) -> set[str]:
    """Return what a mail's words, and its commands, name to test."""
    arguments = (command.argument for command in reading.commands.good if command.word is Word.TEST)
    return {ref_in(text, culprit) for text in (own_text(reading.mail.text), *arguments)}


def _candidate_fix_mail(events: Sequence[EventData], request: EventData) -> str:
    """Return the mail with the newest candidate fix at the time of a request, or ""."""
    posted = [
        event
        for event in effective_events(list(events))
        if event.kind is EventKind.FIX_PROPOSED and event.message_id and event.occurred_at <= request.occurred_at
    ]
    return max(posted, key=EventData.order).message_id if posted else ""


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


def parse_job_result(payload: Any) -> JobResult:
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


# --- Recording ---


def record_result(job: LabJob, result: JobResult, payload: str, now: datetime) -> bool:
    """Record what a runner handed in; False if its lease is lost. Raises RejectedInput if the metric is missing."""
    kind = EventKind.FIX_FAILED
    if result.outcome is JobOutcome.MEASURED:
        head = headline(job)
        measured = result.of_metric(head.metric.name)
        if measured is None:
            raise RejectedInput("result, /measurements", f"expected the metric {head.metric.name!r} among them")
        numbers = {
            (other.old_samples, other.new_samples) for other in result.measurements if other.name == measured.name
        }
        if len(numbers) > 1:
            raise RejectedInput("result, /measurements", f"{measured.name[:80]!r} is given twice, with other numbers")
        kind = FIX_KINDS.get(grade(measured, head.metric.direction).verdict, EventKind.ANSWERED)
    with transaction.atomic():
        if not lab_jobs.finish(job, result.outcome, result.detail, now, payload, result.lease):
            return False
        _record(job, kind, result.base, now)
    return True


def record_outcome(job: LabJob, outcome: JobOutcome, detail: str, now: datetime) -> None:
    """Record that a job ended without a runner."""
    with transaction.atomic():
        if lab_jobs.finish(job, outcome, detail, now):
            _record(job, EventKind.FIX_FAILED, "", now)


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
