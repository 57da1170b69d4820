"""Reports that nobody was told of yet: compose their mail and put it into the outbox, once."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q

from bot.compose.mail import to_bytes
from bot.compose.report_mail import compose
from bot.compose.told import FindingTold, ReportTold
from bot.english import counted
from bot.identity import Identity
from bot.ingest import perf_bisect_result
from bot.replies.addresses import Address
from bot.replies.known import known_as
from tracker.models import Finding, OutgoingMail, OutgoingState, Report
from tracker.status import CLOSED, Grade, Happening, State, Verdict

PURPOSE = "report"
AT_ONCE = 1000
MAILED = 300  # findings in one mail; its page has the rest
log = logging.getLogger(__name__)


def compose_due(identity: Identity, now: datetime, *, approve_first: bool = True, limit: int = AT_ONCE) -> int:
    """Compose the mails of reports that came in as results and were never told, oldest first; the next call goes on.

    Returns how many.
    """
    due = (
        Report.objects.filter(held="", results__isnull=False, verdict__in=(Verdict.REGRESSION, Verdict.IMPROVEMENT))
        .exclude(state__in=CLOSED - {State.NO_ACTION})  # nobody needs to hear what is gone already
        .exclude(outgoing__purpose=PURPOSE)
        .exclude(events__kind=Happening.REPORTED)
        .select_related("culprit", "tree")
        .distinct()
        .order_by("pk")
    )
    composed = 0
    _refresh(identity, now, limit)
    for report in due[:limit]:
        try:
            composed += _compose_one(report, identity, now, approve_first)
        except (ValueError, LookupError, IndexError, UnicodeError) as error:  # one odd report, not all of them
            log.error("%s: no mail could be composed: %s", report.culprit.sha10, error)
    return composed


def _compose_one(report: Report, identity: Identity, now: datetime, approve_first: bool) -> bool:
    mail = compose(told_of(report), identity, now)
    recipients = list(mail.envelope)
    state, reason = (OutgoingState.COMPOSED, "") if approve_first else (OutgoingState.APPROVED, "")
    if not recipients:
        state, reason = OutgoingState.HELD, "it would reach nobody: the author's address can't be used, no list is set"
    try:
        with transaction.atomic():
            OutgoingMail.objects.create(
                message_id=mail.message_id,
                report=report,
                purpose=PURPOSE,
                raw=to_bytes(mail),
                sender=identity.address,
                recipients=recipients,
                subject=mail.subject,
                state=state,
                reason=reason,
                composed_at=now,
            )
            people = (*mail.to, *mail.cc)
            Report.objects.filter(pk=report.pk).update(title=report.title or mail.subject, told=known_as(people))
    except IntegrityError:
        return False  # another worker composed it at the same time
    return True


def _refresh(identity: Identity, now: datetime, limit: int) -> None:
    """Compose again what nobody has approved yet and more is known of since, under the Message-ID that it has.

    Where nobody should be told any more, or not yet, the mail is held with the reason.
    """
    waiting = OutgoingMail.objects.filter(state__in=(OutgoingState.COMPOSED, OutgoingState.HELD))
    stale = waiting.filter(purpose=PURPOSE, stale=True).select_related("report__culprit", "report__tree")
    for row in stale.order_by("pk")[:limit]:
        unsent = waiting.filter(pk=row.pk)
        try:
            if reason := _why_not(row.report):
                unsent.update(state=OutgoingState.HELD, reason=reason, stale=False)
                continue
            mail = compose(told_of(row.report), identity, now, row.message_id)
        except (ValueError, LookupError, UnicodeError) as error:
            log.error("%s: its mail could not be composed again: %s", row.report.culprit.sha10, error)
            continue
        with transaction.atomic():
            if unsent.update(raw=to_bytes(mail), subject=mail.subject, composed_at=now, stale=False):
                Report.objects.filter(pk=row.report.pk, title=row.subject).update(title=mail.subject)


def _why_not(report: Report) -> str:
    """Why nobody should be told of a report that a mail was composed of."""
    if report.held:
        return report.held.replace("\n", "; ")
    if report.verdict == Verdict.UNKNOWN:
        return "whether it is a regression is not known any more"
    if State(report.state) in CLOSED - {State.NO_ACTION}:
        return f"before anybody was told: {report.status}"
    return ""


def told_of(report: Report) -> ReportTold:
    """What there is to tell of a report, its headline first."""
    clear = Q(result__isnull=True) | Q(result__held="")  # what is held is told to nobody
    told = report.findings.filter(clear).select_related("metric", "scenario", "machine", "parent")
    findings = list(told.defer("old_samples", "new_samples").order_by("-headline", "pk")[:MAILED])
    result = findings[0].result
    payload = json.loads(result.payload) if result and result.format == perf_bisect_result.FORMAT else {}
    parent = findings[0].parent
    return ReportTold(
        tag=report.tag,
        sha=report.culprit.sha,
        title=report.culprit.title,
        author=Address(report.culprit.author_name, report.culprit.author_email),
        trailers=tuple((tag, value) for tag, value in report.culprit.trailers),
        patch_message_id=report.culprit.patch_message_id,
        tree=report.tree.name if report.tree else "",
        tree_url=report.tree.url if report.tree else "",
        branch=report.branch,
        parent_sha=parent.sha if parent else "",
        parent_title=parent.title if parent else "",
        base=findings[0].base,
        good=_name_of(payload.get("good", {})),
        bad=_name_of(payload.get("bad", {})),
        bisect_steps=len(payload.get("bisect", {}).get("steps", ())),
        kconfig=payload.get("build", {}).get("kconfig", ""),
        compiler=payload.get("build", {}).get("compiler", ""),
        verdict=Verdict(report.verdict),
        findings=tuple(_findings(findings)),
    )


def _name_of(commit: dict[str, str]) -> str:
    return commit.get("describe") or commit.get("sha", "")[:10]


def _findings(findings: Iterable[Finding]) -> Iterable[FindingTold]:
    for each in findings:
        if each.old_mean is None or each.new_mean is None:
            continue
        box = each.machine
        parts = [
            counted(box.cpus, "CPU") if box.cpus else "",
            counted(box.sockets, "socket") if box.sockets else "",
            box.cpu_model,
            f"({box.codename})" if box.codename else "",
            f"{box.memory_bytes >> 30} GiB memory" if box.memory_bytes else "",
        ]
        yield FindingTold(
            metric=each.metric.name,
            unit=each.metric.unit,
            direction=each.metric.direction,
            verdict=Grade(each.verdict),
            change_pct=each.change_pct_raw,
            old_mean=each.old_mean,
            old_stddev_pct=each.old_stddev_pct,
            old_runs=each.old_runs,
            new_mean=each.new_mean,
            new_stddev_pct=each.new_stddev_pct,
            new_runs=each.new_runs,
            suite=each.scenario.suite,
            params=each.scenario.params,
            machine=box.name,
            machine_text=box.description or ", ".join(part for part in parts if part),
        )
