"""Mails in doubt, which may or may not have been sent: find and resolve them (DESIGN rule 5)."""

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
    """What happens to a mail in doubt without delivery evidence: after `wait`, a person decides, or with `resend` it is
    sent once more under the same Message-ID, which archives and mail clients treat as a duplicate.
    """

    wait: timedelta = timedelta(hours=6)
    resend: bool = False
    sent_folder: str = ""  # its archive path: a missing copy there proves nothing


def sweep(now: datetime) -> tuple[int, int]:
    """Recover mails whose worker died: before the last step they return to the queue, after it they are in doubt.

    Return how many went back to the queue, and how many are now in doubt.
    """
    expired = OutgoingMail.objects.filter(state=S.SENDING, lease_until__lt=now)
    died = "its worker died"
    freed = {"lease_until": None}
    requeued = mail_transitions.transition(
        expired.filter(handed_over_at=None), S.APPROVED, "sweep", now, f"{died} before sending began", **freed
    )
    reason = f"{died} while sending; it counts as sent if a copy is found in an archive"
    in_doubt = mail_transitions.transition(
        expired.filter(handed_over_at__isnull=False), S.IN_DOUBT, "sweep", now, reason, reason=reason, **freed
    )
    return len(requeued), len(in_doubt)


def resolve(policy: RecoveryPolicy, now: datetime) -> int:
    """Queue mails in doubt again where the policy allows it: once, if archives that were read since have no copy after
    `wait`. Return how many.
    """
    if not policy.resend:
        return 0
    waiting = OutgoingMail.objects.filter(state=S.IN_DOUBT, handed_over_at__lt=now - policy.wait)
    archives = [each for each in archives_with_copies() if each.path != policy.sent_folder] if waiting.exists() else []
    read_at = min((each.read_at for each in archives if each.read_at), default=None)
    if read_at is None:  # no archive could have shown a copy
        return 0
    rows = waiting.filter(handed_over_at__lt=read_at - policy.wait)
    rows = rows.exclude(pk__in=MailTransition.objects.filter(by=THE_POLICY, was=S.IN_DOUBT).values("mail"))
    # Only of a mail that a list has not got yet can an archive have a copy.
    listed = rows.only("recipients", "settled", "lists")
    rows = rows.filter(pk__in=[each.pk for each in listed if set(each.lists) - set(each.settled)])
    reason = f"no copy found within {policy.wait}: sent again with the same Message-ID"
    columns = {"reason": reason, "not_before": None, "handed_over_at": None, "lease_until": None}
    return len(mail_transitions.transition(rows, S.APPROVED, THE_POLICY, now, reason, **columns))
