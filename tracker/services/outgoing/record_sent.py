"""What went out is told to its reports: the event that people were told, for many at once.

Sending itself writes no more than a mark; whoever dies between the two leaves the mark to the next round.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from tracker.domain.events import EventData, EventKind, Role
from tracker.models import Event, OutgoingMail
from tracker.services import event_log

AT_ONCE = 250


def record_sent(now: datetime, mails: QuerySet[OutgoingMail] | None = None) -> None:
    """Record that the reports of these mails (of all, by default) were told, where they do not know it."""
    rows = (OutgoingMail.objects.all() if mails is None else mails).filter(untold=True)
    rows = (
        rows.only("message_id", "subject", "sent_at", "report__tree__name")
        .select_related("report__tree")
        .order_by("pk")
    )
    while some := list(rows[:AT_ONCE]):
        with transaction.atomic():
            event_log.refold(event_log.append(_event(mail, now) for mail in some))
            OutgoingMail.objects.filter(pk__in=[mail.pk for mail in some]).update(untold=False)


def _event(mail: OutgoingMail, now: datetime) -> Event:
    assert mail.sent_at
    value = EventData(
        key=f"{EventKind.REPORTED}:{mail.message_id}",
        kind=EventKind.REPORTED,
        at=mail.sent_at.replace(microsecond=0),  # as precise as the Date of an answer, which must not seem older
        by=Role.REPORTER,
        message_id=mail.message_id,
        tree=mail.about.tree.name if mail.about.tree else "",
    )
    return event_log.event_row(mail.about, value, now, mail.subject)
