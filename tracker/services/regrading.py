"""What changes when a metric's direction becomes known, or another: its findings, and the words of their reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import transaction

from tracker.domain.events import EventKind
from tracker.domain.statistics.change import CONTRADICTION, NO_DIRECTION, better_pct, grade_of, word
from tracker.models import BisectResult, Finding, Metric, OutgoingMail, OutgoingState, Purpose, Report
from tracker.services import event_log, report_summary

_COLUMNS = ("verdict", "change_pct")


@transaction.atomic
def regrade(metrics: Collection[Metric]) -> int:
    """Grade the findings of results again by the directions that their metrics have now. Returns how many changed.

    What a robot's mail told stays: its words were the robot's own. So does the verdict of a report that was told.
    """
    findings = Finding.objects.filter(metric__in=metrics, result__isnull=False).select_related("metric", "report")
    changed: list[Finding] = []
    heads: list[Finding] = []
    for finding in findings.defer("old_samples", "new_samples").iterator(chunk_size=1000):
        if _grade(finding):
            changed.append(finding)
        if finding.headline:
            heads.append(finding)
    Finding.objects.bulk_update(changed, _COLUMNS, batch_size=200)
    gone = told_already(finding.report_id for finding in heads)
    for finding in heads:
        if finding.report_id not in gone:
            set_verdict(finding.report, finding)
    event_log.refold(finding.report_id for finding in heads)
    report_summary.refresh(finding.report_id for finding in heads)
    outdate({finding.report_id for finding in (*changed, *heads)})
    return len(changed)


def _grade(finding: Finding) -> bool:
    """Give a finding its grade by its metric's direction; whether that is another than before."""
    if finding.old_mean is None or finding.new_mean is None:
        return False
    before = (finding.verdict, finding.change_pct)
    finding.verdict = grade_of(finding.old_mean, finding.new_mean, finding.p_value, finding.metric.direction)
    finding.change_pct = better_pct(finding.change_pct_raw, finding.metric.direction)
    return before != (finding.verdict, finding.change_pct)


def set_verdict(report: Report, headline: Finding) -> None:
    """The report's word by its headline; a direction that was waited for is waited for no longer."""
    metric = headline.metric
    assert headline.old_mean is not None
    assert headline.new_mean is not None
    report.verdict = word(headline.old_mean, headline.new_mean, metric.direction)
    silence = NO_DIRECTION.format(metric=metric.name)
    said = {"metric": metric.name, "said": metric.direction}  # what a result said and we know now
    settled = {silence, *(CONTRADICTION.format(known=known, **said) for known in ("higher", "lower"))}
    report.held = _without(report.held, settled)
    if metric.direction == "unknown":
        report.held = "\n".join(each for each in (report.held, silence) if each)
    else:
        for row in report.results.exclude(held="").defer("payload"):
            BisectResult.objects.filter(pk=row.pk).update(held=_without(row.held, settled))
    Report.objects.filter(pk=report.pk).update(verdict=report.verdict, held=report.held)


def _without(held: str, reasons: Collection[str]) -> str:
    """The reasons, a line each, without these."""
    return "\n".join(each for each in held.split("\n") if each and each not in reasons)


def outdate(report_ids: Collection[int]) -> None:
    """Note that the mails of these reports say less than we know: those that nobody has approved yet are composed
    again, and behind those that have gone out a follow-up may be due.
    """
    if report_ids:
        ended = (OutgoingState.CANCELLED, OutgoingState.FAILED)
        mails = OutgoingMail.objects.filter(report__in=report_ids, purpose=Purpose.REPORT)
        mails.exclude(state__in=ended).update(stale=True, looked_at=None)


def told_already(report_ids: Iterable[int]) -> set[int]:
    """Those of these reports that people were told of, or whose mail can't be called back any more."""
    ids = list(report_ids)
    at_rest = (OutgoingState.COMPOSED, OutgoingState.HELD, OutgoingState.CANCELLED)
    mailed = OutgoingMail.objects.filter(report__in=ids).exclude(state__in=at_rest).values_list("report_id", flat=True)
    told = Report.objects.filter(pk__in=ids, events__kind=EventKind.REPORTED).values_list("pk", flat=True)
    return {*mailed, *told}


@transaction.atomic
def set_headline(finding: Finding) -> bool:
    """Make a finding the headline of its report, by an operator's word. False where people were told already."""
    if told_already([finding.report_id]) or finding.old_mean is None or finding.new_mean is None:
        return False
    Finding.objects.filter(report=finding.report_id, headline=True).update(headline=False)
    Finding.objects.filter(pk=finding.pk).update(headline=True)
    set_verdict(finding.report, finding)
    event_log.refold([finding.report_id])
    report_summary.refresh([finding.report_id])
    outdate([finding.report_id])
    return True


@transaction.atomic
def release(report: Report) -> bool:
    """Let a report and its held results go their way, by an operator's word; what held them is noted.

    False where nothing was held, or where a direction that nobody has told holds it still.
    """
    silence = NO_DIRECTION.partition("{")[0]
    held = list(report.results.exclude(held="").defer("payload"))
    for row in held:
        was = f"was held: {row.held.replace(chr(10), '; ')}"
        note = "; ".join(each for each in (row.note, was) if each)
        BisectResult.objects.filter(pk=row.pk).update(held="", note=note)
    waits = "\n".join(reason for reason in report.held.split("\n") if reason.startswith(silence))
    Report.objects.filter(pk=report.pk).update(held=waits)
    report_summary.refresh([report.pk])
    outdate([report.pk])
    return bool(held or report.held) and not waits
