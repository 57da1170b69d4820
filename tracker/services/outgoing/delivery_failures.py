"""Whom a mail did not reach: noted with the words, and whose address is dead gets no more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from tracker.models import Correspondent, DeliveryFailure, FailureSource, Mailing, OutgoingMail

# RFC 3463 section 3: nobody is there (X.1.x, but for those that find fault with the sender), or the mailbox is closed.
_DEAD = re.compile(r"\b5\.(?:1\.(?:[0-46]|10)|2\.1)\b")
# What is said of an address, be it for now; not what is said of a mail (X.6), a policy (X.7), or of our own server.
_PERSONAL = re.compile(r"\b[45]\.[12]\.\d{1,3}\b")
_STATUS = re.compile(r"\b[245]\.\d{1,3}\.\d{1,3}\b")
_NOBODY = re.compile(
    r"\b55[0-3]\b.*(?:no such (?:user|mailbox|recipient|address)|(?:user|recipient|mailbox|address|account)\b.{0,80}?"
    r"\b(?:unknown|not found|does not exist|doesn't exist|invalid|disabled|inactive)|unknown (?:user|recipient))",
    re.I,
)
OFTEN = 3  # mails that an address could not take (a full box) within …
LATELY = timedelta(days=30)
MOST_WORDS = 500


def is_dead(words: str) -> bool:
    """Whether a refusal says that nobody is at the address, rather than that this mail is not wanted."""
    return bool(_DEAD.search(words)) or (not _STATUS.search(words) and bool(_NOBODY.search(words)))


def record(mail: OutgoingMail, refused: Mapping[str, str], by: FailureSource, now: datetime) -> None:
    """Note refusals of one mail. Who is dead, or could not take several mails lately, counts as bouncing from now on;
    a list never does: that, an operator must see to.
    """
    DeliveryFailure.objects.bulk_create(
        [
            DeliveryFailure(
                mail=mail,
                address=each.lower(),
                words=words[:MOST_WORDS],
                by=by,
                dead=is_dead(words),
                personal=bool(_PERSONAL.search(words)),
                at=now,
            )
            for each, words in refused.items()
        ],
        ignore_conflicts=True,
    )
    lists = {each.lower() for each in mail.lists}  # who else is there, one answer of its server does not tell
    for address, words in refused.items():
        if address.lower() not in lists and (is_dead(words) or _often(address, now)):
            _bounces(address.lower(), f"{now:%Y-%m-%d}: {words}"[:MOST_WORDS], now)


def _often(address: str, now: datetime) -> bool:
    lately = DeliveryFailure.objects.filter(address=address.lower(), at__gt=now - LATELY, personal=True)
    return lately.count() >= OFTEN


def _bounces(address: str, words: str, now: datetime) -> None:
    """Who wants no mail, or must get none, stays so; whatever else is known of the address yields."""
    values = {"mailing": Mailing.BOUNCING, "note": words, "since": now}
    row, new = Correspondent.objects.get_or_create(address=address, defaults=values)
    if not new and row.mailing == Mailing.OPTED_IN:
        Correspondent.objects.filter(pk=row.pk).update(**values)


def clear_bounce(address: str, at: datetime) -> None:
    """Somebody wrote from an address: if it bounced before that, it does not any more."""
    Correspondent.objects.filter(address=address.lower(), mailing=Mailing.BOUNCING, since__lt=at).delete()
