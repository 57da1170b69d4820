"""Corrections: of the culprit of a report, of the direction of a metric, of a headline, and what is released.

Another commit may be found to be the culprit, or a range instead of one commit. A correction is an event like any
other, so it is shown, and can be undone and redone. The report follows: it keeps its mails, findings, events and
addresses, and whoever looks for the former culprit finds it. Results about the former culprit still go to this report;
a robot's mail about it doesn't make a second one.

What git says of a commit counts only while that commit is the culprit. When the culprit changes, what git said is
reversed under the name of the commit that it was about (`_mark`); when that commit is the culprit again, these
reversals are reversed. The trees are walked from their beginning then, since the new culprit may be older than their
checkpoints. Mail that names the former culprit waits for a person; so does a report that was not mailed yet, since its
results name another commit.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from tracker.domain import versions
from tracker.domain.archived_reports import placeholder
from tracker.domain.events import EventData, EventKind, InvalidInput
from tracker.domain.report_state import effective_events
from tracker.domain.statistics import CONTRADICTION, NO_DIRECTION, better_pct, grade_of, verdict_of
from tracker.models import (
    BisectResult,
    Commit,
    CurveChange,
    Finding,
    Metric,
    OutgoingMail,
    OutgoingState,
    Purpose,
    RelatedCommit,
    Report,
    Tree,
)
from tracker.models.mail import WAITING
from tracker.services import catalog, database, event_log, report_summary
from tracker.services.database import Lock
from tracker.services.mail_transitions import transition

# --- Another culprit ---

_SHA = re.compile(r"[0-9a-f]{7,40}\Z")
_RANGE = re.compile(r"(?!.*\.\..*\.\.)([\w][\w./-]{0,60}?)(?<!\.)\.\.(?!\.)([\w][\w./-]{0,60})\Z", re.A)
_FULL = 40  # digits
_HELD = "people corrected its culprit: its results name another commit"


def corrected(event: EventData, text: str) -> EventData:
    """Return the event that says what the culprit is: a sha, or a range as git writes it. Raises InvalidInput."""
    if _SHA.match(text.lower()):
        return replace(event, commit=text.lower())
    if _RANGE.match(text):
        return replace(event, title=text)
    raise InvalidInput(f"expected the sha of the culprit, or a range like v6.11..v6.12-rc1; found {text[:40]!r}")


def checked(event: EventData, reports: Collection[int]) -> EventData:
    """Return the event with the commit's whole sha. Raises InvalidInput if it is unknown, or another report has it, or
    if the versions of a range can't be its ends.
    """
    if len(reports) > 1:
        raise InvalidInput(f"expected one report, which alone has a culprit; found {len(reports)}")
    if not event.commit:
        old, new = map(versions.parse, event.title.split("..", 1))
        if old and new and not old < new:
            raise InvalidInput(f"expected the older version first; found {event.title}")
        return event
    commits = list(Commit.objects.filter(sha__startswith=event.commit, placeholder=False)[:2])
    if len(commits) > 1:
        raise InvalidInput(f"more than one commit begins with {event.commit}; give more of its digits")
    if not commits and len(event.commit) < _FULL:
        raise InvalidInput(f"no commit is known here that begins with {event.commit}; give its whole sha")
    sha = commits[0].sha if commits else event.commit
    reported = Report.objects.filter(Q(culprit__sha=sha) | Q(culprit__other_commits__sha=sha))
    if other := reported.exclude(pk__in=reports).select_related("culprit").first():
        raise InvalidInput(f"{sha[:10]} has a report already: make this one its duplicate ({other})")
    return replace(event, commit=sha)


@transaction.atomic
def follow(reports: Collection[int], person: str, now: datetime) -> None:
    """Give these reports the culprits that their events say; what git said of the former ones no longer counts. Raises
    InvalidInput if that can't be.
    """
    changed = Report.objects.select_for_update(of=("self",)).select_related("culprit")
    corrections = changed.filter(pk__in=reports, events__kind=EventKind.CORRECTED)
    moved = [report.pk for report in {report.pk: report for report in corrections}.values() if _follow(report, now)]
    if moved:
        about = Q(report__in=moved) | Q(reminders__report__in=moved)
        waiting = OutgoingMail.objects.filter(about, state__in=WAITING).values("pk")
        held = {"reason": _HELD, "decided_by_person": True}
        transition(OutgoingMail.objects.filter(pk__in=waiting), OutgoingState.HELD, person, now, _HELD, **held)
        RelatedCommit.objects.filter(report__in=moved).delete()
        Tree.objects.exclude(cursor="").update(cursor="")
        event_log.fold(moved)


def _follow(report: Report, now: datetime) -> bool:
    """Give a report the culprit that its events say; return whether that is another one than before. Raises
    InvalidInput if another report has it by now.
    """
    events = [event.value() for event in report.events.all()]
    standing = effective_events(events)
    corrections = sorted((event for event in standing if event.kind is EventKind.CORRECTED), key=EventData.order)
    first = min((event for event in events if event.kind is EventKind.CORRECTED), key=EventData.order)
    culprit = _culprit(report, corrections[-1]) if corrections else catalog.commit_for(first.remark)
    former = report.culprit
    if culprit.pk == former.pk:
        return False
    if other := Report.objects.filter(culprit=culprit).select_related("culprit").first():
        raise InvalidInput(f"{culprit.sha10} has another report by now: {other}")
    of_git = [event for event in standing if event.commit and not (event.message_id or event.actor or event.result)]
    said = [event for event in of_git if event.kind is not EventKind.REVERSED]
    hidden = [event for event in of_git if event.reverses and event.key.startswith(_mark(culprit))]
    keys = {event.key for event in events}
    event_log.append(
        event_log.event_row(report, _reversal(event, _mark(former), keys, now), now, "said of a former culprit")
        for event in said
    )
    event_log.append(
        event_log.event_row(report, _reversal(event, "again:", keys, now), now, "said of the culprit")
        for event in hidden
    )
    report.culprit = culprit
    if culprit.author_email:
        names = (culprit.author_email.lower(), " ".join(culprit.author_name.lower().split()))
        report.authors = sorted({*names} - {""})
    if corrections and not (report.held or report.reported_at):
        report.held = _HELD
    elif not corrections and report.held == _HELD:
        report.held = ""
    report.save(update_fields=["culprit", "authors", "held"])
    Commit.objects.filter(Q(corrected_to__in=(former, culprit)) | Q(pk=culprit.pk)).update(corrected_to=None)
    shas = {event.remark for event in (first, *corrections)} - {culprit.sha} if corrections else set()
    Commit.objects.filter(sha__in=shas).update(corrected_to=culprit)
    return True


def _culprit(report: Report, correction: EventData) -> Commit:
    """Return the commit that a correction names, or the one that stands for its range."""
    if correction.commit:
        return catalog.commit_for(correction.commit)
    sha = placeholder(f"{report.tag} {correction.title}")
    return Commit.objects.get_or_create(sha=sha, defaults={"placeholder": True, "title": correction.title})[0]


def _mark(commit: Commit) -> str:
    """Return how the keys begin of what hides git's words about a commit."""
    return f"{EventKind.REVERSED}:former {commit.sha}:"


def _reversal(event: EventData, begins: str, keys: set[str], now: datetime) -> EventData:
    """Return a reversal in the name of git: if the trees say so again, it counts again."""
    key = event_log.free_key(f"{begins}{event.key}", keys)
    keys.add(key)
    return EventData(key, EventKind.REVERSED, now, commit=event.commit, tree=event.tree, reverses=event.key)


# --- Another direction of a metric, another headline, and what is released ---

# Findings from a robot's mail and reports that were sent keep their verdicts.


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
