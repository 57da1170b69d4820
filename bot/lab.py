"""Open a job for each request that the lab owes, with its patch and base; withdraw those that nobody waits for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from django.db import transaction

from bot.git import applying
from bot.lab.recording import record_outcome
from bot.lab.requested_patch import NONE, RequestedPatch, requested_patch
from bot.mail.auth.verdict import AuthVerdict
from bot.mail.identity import BotIdentity
from tracker.domain.events import EventData, EventKind
from tracker.domain.lab.debts import Debt, Request
from tracker.domain.lab.jobs import UNFINISHED, JobOutcome
from tracker.domain.report_state.fold import effective_events
from tracker.models import LabJob, Message, Report
from tracker.services import lab_jobs

MOST = 500  # reports in a round, those that have waited longest
_WITH_PATCH = (Request.TEST, Request.MEASURE)
log = logging.getLogger(__name__)


def open_jobs(identity: BotIdentity, trees: Sequence[Path], now: datetime) -> int:
    """Bring the jobs up to date with what the lab owes; return how many were opened.

    A patch that applies to none of its possible bases in a followed tree ends its job at once.
    """
    found = lab_jobs.owed_reports(MOST)
    owed = {(each.report.pk, debt.event.key): (each, debt) for each in found for debt in each.debts}
    lab_jobs.withdraw_all_but(owed.keys(), UNFINISHED if len(found) < MOST else ())
    rows = LabJob.objects.filter(report__in=[each.report for each in found])
    known = set(rows.values_list("report", "event_key"))
    opened = 0
    for key, (each, debt) in owed.items():
        if key not in known:
            events = [event.value() for event in each.events]
            opened += _try_open(each.report, debt, events, identity, trees, now)
    lab_jobs.reopen(known & owed.keys())
    return opened


def _try_open(
    report: Report,
    debt: Debt,
    events: Sequence[EventData],
    identity: BotIdentity,
    trees: Sequence[Path],
    now: datetime,
) -> bool:
    """Open one job; a mail or a tree that can't be read keeps no other from being opened."""
    try:
        candidate = _candidate(events, debt.event)
        patch = requested_patch(debt.event.message_id, candidate) if debt.request in _WITH_PATCH else NONE
        found = _checked(patch, report, trees)
        proven = identity.trust_policy == "open" or _is_proven(debt.event, patch, events)
        with transaction.atomic():
            job = lab_jobs.open_job(report, debt, now, **_columns(patch, found, debt.event, proven=proven))
            # A stranger's patch is not answered, and a report gets such an answer once a day.
            if job and job.applies is False and proven and not lab_jobs.answered_lately(report, now):
                record_outcome(job, JobOutcome.NOT_APPLIED, found.error, now)
            return job is not None
    except Exception:  # bad mail, or a broken tree
        log.exception("%s: the job for %s could not be opened", report.culprit.sha10, debt.event.key)
        return False


def _checked(patch: RequestedPatch, report: Report, trees: Sequence[Path]) -> applying.ApplyCheck:
    """Return where a patch applies: at the commit that it names, at the culprit, or at the head of the tree."""
    bases = [each for each in (patch.base, report.culprit.sha) if each]
    if not patch.text or patch.in_series:  # the other patches of a series come first
        return applying.ApplyCheck()
    return applying.check(trees, bases, patch.text)


def _columns(patch: RequestedPatch, found: applying.ApplyCheck, event: EventData, *, proven: bool) -> dict[str, object]:
    return {
        "asked_in": event.message_id,
        "proven": proven,
        "title": patch.title[:500],
        "patch_mail": patch.message_id,
        "in_series": patch.in_series,
        "branch": patch.branch,
        "base": found.base or patch.base,
        "applies": bool(found.base) if found.known else None,
    }


def _is_proven(event: EventData, patch: RequestedPatch, events: Sequence[EventData]) -> bool:
    """Whether it is proven who asks and whose patch it is, or a person here stands for these very mails."""
    named = {each for each in (event.message_id, patch.message_id) if each}
    trusted = Message.objects.filter(message_id__in=named, trust=AuthVerdict.PASS)
    left = named - set(trusted.values_list("message_id", flat=True))
    return left <= {each.message_id for each in effective_events(list(events)) if each.actor} and bool(
        named or event.actor
    )


def _candidate(events: Sequence[EventData], request: EventData) -> str:
    """Return the mail with the newest candidate fix at the time of a request, or ""."""
    posted = [
        each
        for each in effective_events(list(events))
        if each.kind is EventKind.FIX_PROPOSED and each.message_id and each.occurred_at <= request.occurred_at
    ]
    return max(posted, key=EventData.order).message_id if posted else ""
