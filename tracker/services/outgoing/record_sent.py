"""Record sent mail as "reported" events of its reports, in batches.

Sending only sets a flag; if a worker dies in between, the next round finds the flag.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from tracker.domain.events import EventData, EventKind, Role
from tracker.models import Event, OutgoingMail
from tracker.services.reports import event_log

AT_ONCE = 250


def record_sent(now: datetime, mails: QuerySet[OutgoingMail] | None = None) -> None:
    """Record the missing "reported" events of these mails (by default, of all)."""
    rows = (OutgoingMail.objects.all() if mails is None else mails).filter(unrecorded=True)
    rows = (
        rows.only("message_id", "subject", "sent_at", "report__tree__name")
        .select_related("report__tree")
        .order_by("pk")
    )
    while batch := list(rows[:AT_ONCE]):
        with transaction.atomic():
            event_log.refold(event_log.append(_event(mail, now) for mail in batch))
            OutgoingMail.objects.filter(pk__in=[mail.pk for mail in batch]).update(unrecorded=False)


def _event(mail: OutgoingMail, now: datetime) -> Event:
    assert mail.sent_at
    value = EventData(
        key=f"{EventKind.REPORTED}:{mail.message_id}",
        kind=EventKind.REPORTED,
        occurred_at=mail.sent_at.replace(
            microsecond=0
        ),  # whole seconds, like the Date of a reply, which must not seem older
        role=Role.REPORTER,
        message_id=mail.message_id,
        tree=mail.about.tree.name if mail.about.tree else "",
    )
    return event_log.event_row(mail.about, value, now, mail.subject)
