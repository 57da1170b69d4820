"""What the database knows that affects a mail: opt-outs, earlier reports of the same change, mails per day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time

from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from bot.compose.policy.policy import Policy, PolicyContext, first_day
from bot.mail.people.mailmap import Aliases
from tracker.domain.events import EventKind, Part
from tracker.domain.report_state.fold import effective_events
from tracker.models import Correspondent, Mailing, OutgoingMail, OutgoingState, Purpose, Report

_SENDABLE = (OutgoingState.APPROVED, OutgoingState.SENDING, OutgoingState.SENT, OutgoingState.IN_DOUBT)
_FIX = frozenset({EventKind.FIX_PROPOSED, EventKind.FIX_CONFIRMED, EventKind.FIX_QUEUED, EventKind.FIX_MERGED})
_REASONS = {Mailing.OPTED_OUT: "opted out", Mailing.BOUNCING: "bounces", Mailing.STOPPED: "on the stop list"}


def excluded_addresses(aliases: Aliases) -> dict[str, str]:
    """Return the addresses that must get no mail, and the reason: for whoever wants none, with all aliases of theirs; a
    bounce is of one address.
    """
    rows = Correspondent.objects.exclude(mailing=Mailing.OPTED_IN).values_list("address", "mailing", "note")
    excluded: dict[str, str] = {}
    for address, mailing, note in rows:
        addresses = [address] if mailing == Mailing.BOUNCING else aliases.of(address)
        excluded |= dict.fromkeys(addresses, _REASONS[Mailing(mailing)] + (f": {note}" if note else ""))
    return excluded


def policy_context(report: Report) -> PolicyContext:
    """Return what decides whether a report is mailed now."""
    same = _same_patch(report)
    return replace(
        basic_context(report),
        reported_by=_reported_by(report),
        same_patch=same.culprit.sha if same else "",
        same_patch_tree=same.tree.name if same and same.tree else "",
    )


def basic_context(report: Report, *, with_fix: bool = True) -> PolicyContext:
    """Return when a fix was posted (None unless `with_fix`), and whether the author opted in."""
    events = [event.value() for event in report.events.all()] if with_fix else []
    # What a curve confirms was posted before: by the mail or the commit that it confirms.
    posted = [
        event.occurred_at
        for event in effective_events(events)
        if event.kind in _FIX and not event.result.startswith("curve ")
    ]
    opted_in = Correspondent.objects.filter(address=report.culprit.author_email, mailing=Mailing.OPTED_IN)
    return PolicyContext(fix_posted_at=max(posted, default=None), opted_in=opted_in.exists())


def _reported_by(report: Report) -> str:
    """Return the Message-ID of an earlier report by another robot, found in an archive, or ""."""
    event = report.events.filter(kind=EventKind.REPORTED).exclude(message_id="").first()
    return event.message_id if event else ""


def _same_patch(report: Report) -> Report | None:
    """Return a mailed report of the same patch under another commit, matched by git or by the commit's data."""
    culprit = report.culprit
    same = Q(related__commit=culprit, related__part=Part.CULPRIT)
    if culprit.same_patch_as_id:
        same |= Q(culprit=culprit.same_patch_as_id)
    if culprit.patch_id and culprit.title:
        same |= Q(culprit__patch_id=culprit.patch_id, culprit__title=culprit.title)
    if culprit.patch_message_id:
        same |= Q(culprit__patch_message_id=culprit.patch_message_id)
    mailed = Q(outgoing__purpose=Purpose.REPORT, outgoing__state__in=(*_SENDABLE, OutgoingState.COMPOSED))
    reports = Report.objects.filter(same).filter(Q(reported_at__isnull=False) | mailed).exclude(pk=report.pk).distinct()
    return reports.select_related("culprit", "tree").order_by("pk").first()


class MailCalendar:
    """Mails per day and address, from today on; updated as mails are added to the outbox."""

    def __init__(self, policy: Policy, now: datetime) -> None:
        self._policy, self._today = policy, now.astimezone(timezone.get_default_timezone()).date()
        self._sent: dict[date, Counter[str]] = {}
        own = Q(purpose__startswith=Purpose.ANSWER) | Q(purpose__startswith=Purpose.SUBSCRIPTION)  # asked for
        rows = OutgoingMail.objects.filter(state__in=_SENDABLE).exclude(own)
        midnight = datetime.combine(self._today, time(), tzinfo=timezone.get_default_timezone())
        waits = Q(state__in=(OutgoingState.APPROVED, OutgoingState.SENDING), not_before=None)  # sent today
        dated = rows.annotate(day=Coalesce("not_before", "sent_at", "composed_at")).filter(waits | Q(day__gte=midnight))
        for day, recipients in dated.values_list("day", "recipients").iterator(chunk_size=1000):
            self._count(max(day.date(), self._today), recipients)

    def due(self, lists: Iterable[str], author: str) -> datetime | None:
        """Return when a mail to these may be sent: None for now, else the start of a later day."""
        day = first_day(self._sent, set(lists), author, self._policy, self._today)
        return None if day == self._today else datetime.combine(day, time(), tzinfo=timezone.get_default_timezone())

    def add(self, addresses: Iterable[str], due: datetime | None) -> None:
        """Count a mail to these addresses on that day."""
        self._count(due.date() if due else self._today, addresses)

    def _count(self, day: date, addresses: Iterable[str]) -> None:
        self._sent.setdefault(day, Counter()).update([*set(addresses), ""])
