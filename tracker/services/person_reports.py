"""Reports that people make: opened by a command or by a click, joined with a robot's, and given their culprit.

A person's report has what its mail says and no findings. While nobody knows its culprit, a placeholder commit stands
for it, made of the Message-ID, so that the report has an address that stays. Once somebody names the commit, the report
takes it up with all its events; if that commit has a report already, the person's becomes a duplicate of it. A person's
mail about a culprit that is reported already joins that report.

Mails that look like such a report wait as offers in the review queue. Of those that are open MOST_OFFERS stay: those of
proven writers first, the likeliest first, so that no flood of forged ones keeps the others out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from tracker.domain.archived_reports import PersonReport, placeholder, reported_event
from tracker.domain.events import EventData, EventKind, ReportedBy, Verdict
from tracker.domain.report_state import effective_events
from tracker.domain.text import tag_of
from tracker.models import Commit, Decision, Event, OfferedReport, Report
from tracker.services import catalog, event_log, report_summary

MOST_OFFERS = 300  # open ones
MOST_BY_ONE = 5  # those of one address
_SHORTEST = 10  # digits of a sha that name a commit that is not known yet


def open_report(mail: OfferedReport, facts: PersonReport) -> tuple[Report, bool]:
    """Return the report of a person's mail, and whether it is theirs; it joins one about the same culprit.

    Of several people who report a commit, the first by the date of the mail is the reporter, whichever was read first.
    The caller records the event that it was reported (`archived_reports.reported_event`).
    """
    report, stand_in = _stand_in(mail.message_id)
    if report is None:  # else it is read again
        culprit = commit_named(facts.culprit.value, facts.culprit_title.value)
        if culprit is None:
            culprit, _ = Commit.objects.get_or_create(sha=stand_in, defaults={"placeholder": True})
        before = Report.objects.filter(culprit=culprit.corrected_to or culprit).select_related("culprit").first()
        if before and not (before.of_person and _is_earlier(mail, before)):
            return before, False
        report = before or catalog.report_for(culprit, Verdict.REGRESSION, title=mail.subject)
        if culprit.placeholder:
            report.tag = tag_of(stand_in)
    report.reported_by, report.reporters = ReportedBy.PERSON, mail.reporters
    report.facts = {**facts.stored(), "mail": mail.message_id, "sent": mail.sent_at.isoformat()}
    report.title, report.subsystem = mail.subject, report_summary.clipped(mail.subsystem)
    report.recipients, report.people_verified = sorted(set(mail.recipients)), mail.proven
    report.save()
    return report, True


def _is_earlier(mail: OfferedReport, report: Report) -> bool:
    """Whether a mail is the one that made this report, or was sent before that one."""
    made_by = (str(report.facts.get("sent", "")), str(report.facts.get("mail", "")))
    return (mail.sent_at.isoformat(), mail.message_id) <= made_by


def _stand_in(message_id: str) -> tuple[Report | None, str]:
    """Return a mail's own report, if it has one, and the sha that stands for its culprit while nobody knows that.

    Somebody may have named such a sha as a commit: then it is the next one.
    """
    number = 0
    while True:
        sha = placeholder(f"{message_id}#{number}" if number else message_id)
        report = Report.objects.filter(tag=tag_of(sha)).select_related("culprit").first()
        is_own = report is not None and report.facts.get("mail") == message_id
        is_free = report is None and not Commit.objects.filter(sha=sha, placeholder=False).exists()
        if is_own or is_free:
            return report, sha
        number += 1


def commit_named(sha: str, title: str) -> Commit | None:
    """Return the commit that a mail names; None if that is too short to stand for one, or none. What is known of a
    commit stays as it is: anybody may name one.
    """
    sha = sha.lower()
    if not sha or Commit.objects.filter(sha__startswith=sha[:_SHORTEST], placeholder=True).exists():
        return None
    if len(sha) >= _SHORTEST:
        return catalog.known_commit(sha) or catalog.commit_for(sha, title=title)
    named = list(Commit.objects.filter(sha__startswith=sha)[:2])
    return named[0] if len(named) == 1 else None


@transaction.atomic
def name_culprit(report: Report, bisected: EventData) -> None:
    """Give a person's report the commit that somebody has found, by the event that says so.

    If that commit has a report already, this one becomes a duplicate of it.
    """
    report = Report.objects.select_for_update(of=("self",)).select_related("culprit").get(pk=report.pk)
    culprit = commit_named(bisected.commit, bisected.title) if report.culprit.placeholder else None
    if culprit is None:
        return
    if Report.objects.filter(culprit=culprit.corrected_to or culprit).exists():
        key = f"{EventKind.DUPLICATE}:{bisected.key}"
        same = replace(bisected, key=key, kind=EventKind.DUPLICATE, title="", remark=culprit.sha10)
        event_log.record([event_log.event_row(report, same, bisected.occurred_at)])
        return
    before = report.culprit
    report.culprit = culprit
    report.save(update_fields=["culprit"])
    before.delete()
    event_log.fold([report.pk])


# --- Offers ---


def prune_offers() -> int:
    """Delete the open offers beyond MOST_OFFERS, and beyond MOST_BY_ONE of one address; return how many."""
    waiting = OfferedReport.objects.filter(decision=Decision.OPEN).order_by("-proven", "-score", "-sent_at", "pk")
    kept = 0
    surplus: list[int] = []
    by_address: Counter[str] = Counter()
    for pk, address in waiting.values_list("pk", "author_email"):
        by_address[address] += 1
        if kept < MOST_OFFERS and by_address[address] <= MOST_BY_ONE:
            kept += 1
        else:
            surplus.append(pk)
    return OfferedReport.objects.filter(pk__in=surplus).delete()[0] if surplus else 0


@transaction.atomic
def decide(offer: OfferedReport, decision: Decision, person: str, now: datetime) -> Report | None:
    """Accept or reject an offer, once; return the report that it became, None if there is none.

    Its thread is filed by a worker (the task `file_accepted`).
    """
    waiting = OfferedReport.objects.filter(pk=offer.pk, decision=Decision.OPEN)
    if not waiting.update(decision=decision, decided_by=person, decided_at=now) or decision != Decision.ACCEPTED:
        return None
    facts = offer.person_report
    report, _ = open_report(offer, facts)
    event = replace(reported_event(facts, offer.message_id, offer.sent_at), actor=person)
    events = [row.value() for row in report.events.all()]
    if event.key not in {standing.key for standing in effective_events(events)}:  # new, or it was taken back
        event = replace(event, key=event_log.free_key(event.key, {before.key for before in events}))
    event_log.record([event_log.event_row(report, event, now, offer.subject)])
    report_summary.refresh([report.pk])
    return report


@transaction.atomic
def take_back(offer: OfferedReport, person: str, now: datetime) -> bool:
    """Undo the decision on an offer: a report that it made is withdrawn, and it waits again."""
    decided = OfferedReport.objects.filter(pk=offer.pk).exclude(decision=Decision.OPEN)
    if not decided.update(decision=Decision.OPEN, decided_by="", decided_at=None):
        return False
    events = Event.objects.filter(kind=EventKind.REPORTED, message_id=offer.message_id).exclude(actor="")
    for event in events.select_related("report"):
        report = event.report
        only = report.of_person and not report.results.exists() and not report.findings.exists()
        if only and not report.events.exclude(pk=event.pk).exists() and not report.messages.exists():
            report.delete()
            continue
        event_log.record([event_log.reversal(report, event.key, person, now)])
    return True


def waiting_messages() -> Sequence[str]:
    """Return the Message-IDs of accepted offers whose mail is not filed yet."""
    accepted = OfferedReport.objects.filter(decision=Decision.ACCEPTED, source__message=None)
    return list(accepted.values_list("message_id", flat=True)[:MOST_OFFERS])
