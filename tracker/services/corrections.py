"""The culprit of a report, corrected by people: another commit is found to be it, or a range instead of one commit.

A correction is an event like any other, so it is shown, and can be undone and redone. The report follows: it keeps its
mails, findings, events and addresses, and whoever looks for the former culprit finds it. Results about the former
culprit still go to this report; a robot's mail about it doesn't make a second one.

What git says of a commit counts only while that commit is the culprit. When the culprit changes, what git said is
reversed under the name of the commit that it was about (`_mark`); when that commit is the culprit again, these
reversals are reversed. The trees are walked from their beginning then, since the new culprit may be older than their
checkpoints. Mail that names the former culprit waits for a person; so does a report that was not mailed yet, since its
results name another commit.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from tracker.domain import versions
from tracker.domain.archived_reports import placeholder
from tracker.domain.events import EventData, EventKind, InvalidInput
from tracker.domain.report_state import effective_events
from tracker.models import Commit, OutgoingMail, OutgoingState, RelatedCommit, Report, Tree
from tracker.models.mail import WAITING
from tracker.services import catalog, event_log
from tracker.services.mail_transitions import transition

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
