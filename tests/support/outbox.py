"""Helpers for tests of the outbox."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from bot.outbox import sender
from bot.outbox.transports import SendStatus, Server, SmtpTransport
from tracker.models import MailTransition, OutgoingMail, OutgoingState
from tracker.services import mail_transitions

LEASE = timedelta(seconds=60)


def send(server: Server, **options: Any) -> Counter[SendStatus]:
    """Send what is due, as one run of a worker, and count the outcomes."""
    return sender.send_due(SmtpTransport(server), sender.SendConfig(**{"lease": LEASE, **options}))


def claim(now: datetime | None = None, by: str = "worker", limit: int = 50) -> list[OutgoingMail]:
    """Claim the mails that a worker would take now."""
    return sender.claim_due(now or timezone.now(), LEASE, limit, by)


def act(mail: OutgoingMail, action: str, reason: str = "") -> bool:
    """Apply an operator's action, as on the page, and return whether it took effect."""
    return mail_transitions.apply_action(mail.pk, action, "dana", timezone.now(), reason)


def reloaded(mail: OutgoingMail) -> OutgoingMail:
    return OutgoingMail.objects.get(pk=mail.pk)


def states_of(mail: OutgoingMail) -> list[str]:
    """Return the states that a mail went through, in order."""
    return list(mail.transitions.values_list("became", flat=True))


def unrecorded() -> list[str]:
    """Describe mails whose state differs from the end of their record: a transition was not recorded."""
    last: dict[int, str] = {}
    for mail, was, became in MailTransition.objects.order_by("pk").values_list("mail", "was", "became"):
        if was != last.get(mail, ""):
            return [f"mail {mail}: the record goes on from {was!r} where it was {last.get(mail, '')!r}"]
        last[mail] = became
    states = dict(OutgoingMail.objects.values_list("pk", "state"))
    return [f"mail {pk}: {state}, recorded {last.get(pk)}" for pk, state in states.items() if last.get(pk) != state]


def in_state(*states: OutgoingState) -> int:
    return OutgoingMail.objects.filter(state__in=states).count()
