"""Mails of which nobody knows whether they went out: found, looked up, and resolved (DESIGN rule 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tracker.models import MailTransition, OutgoingMail, OutgoingState
from tracker.services import mail_transitions
from tracker.services.outgoing.archive_copies import archives_with_copies

S = OutgoingState
THE_POLICY = "the policy"


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """What becomes of a mail in doubt that was seen nowhere: after `wait`, a person decides, or it is sent once more
    with the same Message-ID, which archives and readers know as the same mail.
    """

    wait: timedelta = timedelta(hours=6)
    resend: bool = False
    no_witness: str = ""  # an archive that only we write to: the Sent folder


def sweep(now: datetime) -> tuple[int, int]:
    """Mails whose worker died: before the last step, they may go again; after it, they are in doubt.

    Returns how many went back to the queue, and how many are in doubt now.
    """
    orphans = OutgoingMail.objects.filter(state=S.SENDING, lease_until__lt=now)
    died = "its worker died"
    freed = {"lease_until": None}
    again = mail_transitions.transition(
        orphans.filter(data_at=None), S.APPROVED, "sweep", now, f"{died} before anything left", **freed
    )
    words = f"{died} while it left; it is sent if it shows up in an archive"
    lost = mail_transitions.transition(
        orphans.filter(data_at__isnull=False), S.IN_DOUBT, "sweep", now, words, reason=words, **freed
    )
    return len(again), len(lost)


def resolve(policy: RecoveryPolicy, now: datetime) -> int:
    """Send again what the policy says so of: not seen for long enough in archives that were read since, and once.

    Returns how many.
    """
    if not policy.resend:
        return 0
    waiting = OutgoingMail.objects.filter(state=S.IN_DOUBT, data_at__lt=now - policy.wait)
    asked = [each for each in archives_with_copies() if each.path != policy.no_witness] if waiting.exists() else []
    read_at = min((each.read_at for each in asked if each.read_at), default=None)
    if read_at is None:  # nowhere could it have been seen
        return 0
    rows = waiting.filter(data_at__lt=read_at - policy.wait)
    rows = rows.exclude(pk__in=MailTransition.objects.filter(by=THE_POLICY, was=S.IN_DOUBT).values("mail"))
    words = f"seen nowhere within {policy.wait}: sent again with the same Message-ID"
    columns = {"reason": words, "not_before": None, "data_at": None, "lease_until": None}
    return len(mail_transitions.transition(rows, S.APPROVED, THE_POLICY, now, words, **columns))
