"""The moves of an outgoing mail from state to state, each one conditional UPDATE: a second mover moves nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models, transaction
from django.db.models import F, Q

from tracker import history
from tracker.models import OutgoingMail, OutgoingState, Purpose
from tracker.status import Event, Happening, Role

S = OutgoingState
# Who may be moved by a person's word, and where to.
BY_HAND: dict[str, tuple[OutgoingState, frozenset[OutgoingState]]] = {
    "approve": (S.APPROVED, frozenset({S.COMPOSED, S.HELD})),
    "hold": (S.HELD, frozenset({S.COMPOSED, S.HELD, S.APPROVED})),
    "cancel": (S.CANCELLED, frozenset({S.COMPOSED, S.HELD, S.APPROVED, S.FAILED, S.IN_DOUBT})),
    "resend": (S.APPROVED, frozenset({S.IN_DOUBT, S.FAILED})),
}


def move_by_hand(pk: int, verb: str, reason: str = "") -> bool:
    """Approve, hold, cancel or resend; False where the mail is in no state for it, or is about to be composed again."""
    to, within = BY_HAND[verb]
    rows = OutgoingMail.objects.filter(pk=pk, state__in=within)
    if verb == "approve":  # what is about to be composed again is not what was looked at
        rows = rows.filter(stale=False)
    freed = {"not_before": None, "data_at": None, "lease_until": None}
    return rows.update(state=to, reason=reason, by_hand=True, **freed) == 1


def claim(pk: int, now: datetime, lease: timedelta) -> bool:
    """Take an approved mail for sending; one worker succeeds."""
    due = Q(not_before=None) | Q(not_before__lte=now)
    rows = OutgoingMail.objects.filter(due, pk=pk, state=S.APPROVED, stale=False)
    return rows.update(state=S.SENDING, lease_until=now + lease, attempts=F("attempts") + 1, data_at=None) == 1


def _held(mail: OutgoingMail) -> models.QuerySet[OutgoingMail]:
    """The row, as long as it is the claim of this attempt: a worker that lost its lease has no say any more."""
    return OutgoingMail.objects.filter(pk=mail.pk, state=S.SENDING, attempts=mail.attempts)


def begin_data(mail: OutgoingMail, now: datetime) -> bool:
    """Write down that the bytes begin to leave. From here on, a death leaves a doubt.

    False where the lease was lost meanwhile: then somebody else sends it, and we must not.
    """
    return _held(mail).filter(data_at=None).update(data_at=now) == 1


def mark_sent(message_id: str, at: datetime, now: datetime, refused: str = "") -> bool:
    """It went out: seen by us, or found in an archive. The report is told from now on; one transaction.

    `refused` names the recipients that the server turned down, with its words.
    """
    with transaction.atomic():
        mail = OutgoingMail.objects.select_related("report__tree").filter(message_id=message_id).first()
        if mail is None or mail.state == S.SENT:
            return False
        reason = f"not taken for {refused}"[:1000] if refused else ""
        OutgoingMail.objects.filter(pk=mail.pk).update(state=S.SENT, sent_at=at, reason=reason, lease_until=None)
        if mail.purpose != Purpose.REPORT:
            return True  # of the report it tells nothing
        tree = mail.report.tree.name if mail.report.tree else ""
        event = Event(
            key=f"{Happening.REPORTED}:{message_id}",
            kind=Happening.REPORTED,
            at=at.replace(microsecond=0),  # as precise as the Date of an answer, which must not seem older
            by=Role.REPORTER,
            message_id=message_id,
            tree=tree,
        )
        history.record([history.event_row(mail.report, event, now, mail.subject)])
    return True


def retry_later(mail: OutgoingMail, now: datetime, reason: str, max_attempts: int = 8) -> None:
    """Refused for now, or not reached: again after a growing while, and not for ever (DESIGN rule 10)."""
    if mail.attempts >= max_attempts:
        fail(mail, f"gave up after {mail.attempts} attempts: {reason}")
        return
    delay = timedelta(seconds=min(30 * 4 ** min(mail.attempts - 1, 8), 6 * 3600))
    _held(mail).update(state=S.APPROVED, not_before=now + delay, reason=reason[:1000], lease_until=None, data_at=None)


def fail(mail: OutgoingMail, reason: str) -> None:
    """Refused for good, in the server's words."""
    _held(mail).update(state=S.FAILED, reason=reason[:1000], lease_until=None)


def doubt(mail: OutgoingMail, reason: str) -> None:
    """Nobody knows whether the server took it."""
    _held(mail).update(state=S.IN_DOUBT, reason=reason[:1000], lease_until=None)


def sweep(now: datetime) -> tuple[int, int]:
    """Mails whose worker died: before its bytes began to leave, it may go again; after that, it is in doubt.

    Returns how many went back to the queue, and how many are in doubt now.
    """
    orphans = OutgoingMail.objects.filter(state=S.SENDING, lease_until__lt=now)
    again = orphans.filter(data_at=None).update(state=S.APPROVED, lease_until=None)
    lost = orphans.filter(data_at__isnull=False).update(
        state=S.IN_DOUBT,
        lease_until=None,
        reason="the worker died while sending it; it is sent if it shows up in the archive",
    )
    return again, lost
