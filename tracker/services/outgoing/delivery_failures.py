"""Record delivery failures, and stop mail to dead addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from tracker.models import Correspondent, DeliveryFailure, FailureSource, Mailing, OutgoingMail

# RFC 3463 section 3: a bad destination address (X.1.x, without those about the sender), or a disabled mailbox.
_DEAD = re.compile(r"\b5\.(?:1\.(?:[0-46]|10)|2\.1)\b")
# Failures of one address, permanent or not; not of the message (X.6), a policy (X.7) or our own server.
_PERSONAL = re.compile(r"\b[45]\.[12]\.\d{1,3}\b")
_STATUS = re.compile(r"\b[245]\.\d{1,3}\.\d{1,3}\b")
_NO_SUCH_USER = re.compile(
    r"\b55[0-3]\b.*(?:no such (?:user|mailbox|recipient|address)|(?:user|recipient|mailbox|address|account)\b.{0,80}?"
    r"\b(?:unknown|not found|does not exist|doesn't exist|invalid|disabled|inactive)|unknown (?:user|recipient))",
    re.I,
)
OFTEN = 3  # mails that failed for an address (as for a full mailbox) within …
LATELY = timedelta(days=30)
MAX_REPLY_LENGTH = 500


def is_dead(reply: str) -> bool:
    """Return whether a failure means that the address does not exist, rather than that this mail was rejected."""
    return bool(_DEAD.search(reply)) or (not _STATUS.search(reply) and bool(_NO_SUCH_USER.search(reply)))


def record(mail: OutgoingMail, failures: Mapping[str, str], by: FailureSource, now: datetime) -> None:
    """Record the delivery failures of one mail. A dead address, or one with OFTEN failures lately, is bouncing from
    now on. A list never is: an operator must handle that.
    """
    DeliveryFailure.objects.bulk_create(
        [
            DeliveryFailure(
                mail=mail,
                address=each.lower(),
                words=reply[:MAX_REPLY_LENGTH],
                by=by,
                dead=is_dead(reply),
                personal=bool(_PERSONAL.search(reply)),
                at=now,
            )
            for each, reply in failures.items()
        ],
        ignore_conflicts=True,
    )
    lists = {each.lower() for each in mail.lists}  # one failure says nothing about a list's other subscribers
    for address, reply in failures.items():
        if address.lower() not in lists and (is_dead(reply) or _often(address, now)):
            _mark_bouncing(address.lower(), f"{now:%Y-%m-%d}: {reply}"[:MAX_REPLY_LENGTH], now)


def _often(address: str, now: datetime) -> bool:
    lately = DeliveryFailure.objects.filter(address=address.lower(), at__gt=now - LATELY, personal=True)
    return lately.count() >= OFTEN


def _mark_bouncing(address: str, note: str, now: datetime) -> None:
    """Mark an address as bouncing. An opt-out or a stop stays as it is; an opt-in is replaced."""
    values = {"mailing": Mailing.BOUNCING, "note": note, "since": now}
    row, new = Correspondent.objects.get_or_create(address=address, defaults=values)
    if not new and row.mailing == Mailing.OPTED_IN:
        Correspondent.objects.filter(pk=row.pk).update(**values)


def clear_bounce(address: str, at: datetime) -> None:
    """Someone wrote from an address: clear a bouncing mark that is older than that."""
    Correspondent.objects.filter(address=address.lower(), mailing=Mailing.BOUNCING, since__lt=at).delete()
