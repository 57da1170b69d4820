"""Grading again when a metric's direction is set or changed: its findings, and their reports' verdicts.

Findings from a robot's mail and reports that were sent keep their verdicts. Operators' decisions on a report's
headline, and on what is held, are here, too.
"""

from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import F, Q

from tracker.domain.events import EventKind
from tracker.domain.statistics import CONTRADICTION, NO_DIRECTION, better_pct, grade_of, verdict_of
from tracker.models import BisectResult, CurveChange, Finding, Metric, OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import database, event_log, report_summary
from tracker.services.database import Lock


@transaction.atomic
def regrade(metrics: Collection[Metric]) -> int:
    """Grade the findings of results again by the current directions of their metrics. Returns how many changed.

    Findings from a robot's mail keep the robot's verdict. A report that was sent keeps its verdict, too.
    """
    if not metrics:
        return 0
    findings = Finding.objects.filter(metric__in=metrics, result__isnull=False).select_related("metric", "report")
    changed: list[Finding] = []
    heads: list[Finding] = []  # of the others: a direction that is now known no longer holds their reports
    for finding in findings.defer("old_samples", "new_samples").iterator(chunk_size=1000):
        before = (finding.verdict, finding.change_pct)
        if finding.old_mean is not None and finding.new_mean is not None:
            direction = finding.metric.direction
            finding.verdict = grade_of(finding.old_mean, finding.new_mean, finding.p_value, direction)
            finding.change_pct = better_pct(finding.change_pct_raw, direction)
        if (finding.verdict, finding.change_pct) != before:
            changed.append(finding)
        elif finding.headline:
            heads.append(finding)
    Finding.objects.bulk_update(changed, ["verdict", "change_pct"], batch_size=200)
    keys = [metric.pk for metric in metrics]
    transaction.on_commit(lambda: judge_changes(keys))  # not in here: who looks at curves takes their lock first
    update_reports([*changed, *heads])
    return len(changed)


@transaction.atomic
def judge_changes(metrics: Collection[int]) -> None:
    """Say of the changes on the curves of these metrics whether they are for the worse, by the current directions."""
    database.take(Lock.CURVES)
    for pk, direction in Metric.objects.filter(pk__in=metrics).values_list("pk", "direction"):
        changes = CurveChange.objects.filter(curve__metric=pk)
        if direction not in ("higher", "lower"):
            changes.update(is_regression=None)
            continue
        worse = Q(new_level__lt=F("old_level")) if direction == "higher" else Q(new_level__gt=F("old_level"))
        changes.filter(worse).update(is_regression=True)
        changes.exclude(worse).update(is_regression=False)


@transaction.atomic
def update_reports(findings: Collection[Finding]) -> None:
    """Bring the reports of findings that were graded again up to date: their verdicts, states, tables and mails."""
    reports = {finding.report_id for finding in findings}
    heads = [finding for finding in findings if finding.headline]
    already_sent = sent_reports(finding.report_id for finding in heads)
    for finding in heads:
        if finding.report_id not in already_sent:
            set_verdict(finding.report, finding)
    event_log.fold(reports)
    outdate(reports)


def set_verdict(report: Report, headline: Finding) -> None:
    """Set the report's verdict by its headline; a direction that is now known no longer holds the report."""
    metric = headline.metric
    assert headline.old_mean is not None
    assert headline.new_mean is not None
    report.verdict = verdict_of(headline.old_mean, headline.new_mean, metric.direction)
    no_direction = NO_DIRECTION.format(metric=metric.name)
    stated = {"metric": metric.name, "stated": metric.direction}  # a result said what is now set
    settled = {no_direction, *(CONTRADICTION.format(known=direction, **stated) for direction in ("higher", "lower"))}
    report.held = _without(report.held, settled)
    if metric.direction == "unknown":
        report.held = "\n".join(reason for reason in (report.held, no_direction) if reason)
    else:
        for row in report.results.exclude(held="").defer("payload", "files"):
            BisectResult.objects.filter(pk=row.pk).update(held=_without(row.held, settled))
    Report.objects.filter(pk=report.pk).update(verdict=report.verdict, held=report.held)


def _without(held: str, reasons: Collection[str]) -> str:
    """Return the held reasons, one per line, without these."""
    return "\n".join(reason for reason in held.split("\n") if reason and reason not in reasons)


def outdate(report_ids: Collection[int]) -> None:
    """Mark the mails of these reports as outdated: those not yet approved are composed again, and those already sent
    may need a follow-up.
    """
    if report_ids:
        ended = (OutgoingState.CANCELLED, OutgoingState.FAILED)
        mails = OutgoingMail.objects.filter(report__in=report_ids, purpose=Purpose.REPORT)
        mails.exclude(state__in=ended).update(stale=True, looked_at=None)


def sent_reports(report_ids: Iterable[int]) -> set[int]:
    """Return those of these reports that were sent to people, or whose mail can no longer be called back."""
    ids = list(report_ids)
    unsent = (OutgoingState.COMPOSED, OutgoingState.HELD, OutgoingState.CANCELLED)
    mailed = OutgoingMail.objects.filter(report__in=ids).exclude(state__in=unsent).values_list("report_id", flat=True)
    reported = Report.objects.filter(pk__in=ids, events__kind=EventKind.REPORTED).values_list("pk", flat=True)
    return {*mailed, *reported}


@transaction.atomic
def set_headline(finding: Finding) -> bool:
    """Make a finding the headline of its report, as an operator decided. Returns False if the report was sent."""
    if sent_reports([finding.report_id]) or finding.old_mean is None or finding.new_mean is None:
        return False
    Finding.objects.filter(report=finding.report_id, headline=True).update(headline=False)
    Finding.objects.filter(pk=finding.pk).update(headline=True)
    set_verdict(finding.report, finding)
    event_log.fold([finding.report_id])
    outdate([finding.report_id])
    return True


@transaction.atomic
def release(report: Report) -> bool:
    """Release a held report and its held results, as an operator decided; the reasons are kept in a note.

    Returns False if nothing was held, or if an unknown direction still holds the report.
    """
    no_direction = NO_DIRECTION.partition("{")[0]
    held = list(report.results.exclude(held="").defer("payload", "files"))
    for row in held:
        was = f"was held: {row.held.replace(chr(10), '; ')}"
        note = "; ".join(part for part in (row.note, was) if part)
        BisectResult.objects.filter(pk=row.pk).update(held="", note=note)
    remaining = "\n".join(reason for reason in report.held.split("\n") if reason.startswith(no_direction))
    Report.objects.filter(pk=report.pk).update(held=remaining)
    report_summary.refresh([report.pk])
    outdate([report.pk])
    return bool(held or report.held) and not remaining
