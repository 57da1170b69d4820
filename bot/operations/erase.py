"""Erase a person's data on request: what they wrote and their account go, facts and counts stay.

What stays, since it is public elsewhere and is evidence: what git says of commits, and mails that we sent. Their
address stays in one place, as one that gets no mail: to forget it would mean to write to it again.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Model

from tracker.models import (
    Correspondent,
    Event,
    Mailing,
    MailTransition,
    Maintainer,
    Message,
    RawMessage,
    Report,
    Session,
    SignIn,
    Suggestion,
)
from tracker.services.reports.report_summary import refresh

NOBODY = "erased@erased.invalid"
NOTE = "erased on request"
_EMPTY = zlib.compress(b"")


@dataclass(frozen=True, slots=True)
class Erased:
    """How many mails were emptied, and how many accounts closed."""

    mails: int
    accounts: int


@transaction.atomic
def erase(address: str, now: datetime) -> Erased:
    """Erase whoever has this address, in one transaction. What their mail did to reports stays."""
    address = address.lower()
    mails = Message.objects.filter(author_email__iexact=address)
    ids = list(mails.values_list("message_id", flat=True))
    sources = list(mails.values_list("source", flat=True))
    reports = set(mails.values_list("report", flat=True))
    for source in sources:
        # A digest of its own: that of an empty mail would be the same for all.
        digest = f"erased {hashlib.sha256(str(source).encode()).hexdigest()}"
        RawMessage.objects.filter(pk=source).update(compressed=_EMPTY, digest=digest, error="", erased_at=now)
    mails.update(author_name="", author_email=NOBODY, own_text="", subject="", signature="")
    Event.objects.filter(message_id__in=ids).update(quote="")
    Suggestion.objects.filter(message_id__in=ids).update(quote="")
    accounts = _close_accounts(address)
    _forget_names(address)
    Correspondent.objects.update_or_create(
        address=address, defaults={"mailing": Mailing.OPTED_OUT, "note": NOTE, "since": now}
    )
    refresh(reports)
    return Erased(len(ids), accounts)


def _close_accounts(address: str) -> int:
    """Close accounts with this address; what they did is that of a number from now on."""
    users = list(get_user_model()._default_manager.filter(email__iexact=address))
    for user in users:
        name, new = user.get_username(), f"erased-{user.pk}"
        for model, column in ((Event, "actor"), (Suggestion, "decided_by"), (MailTransition, "by")):
            _rename(model, column, name, new)
        for related in ("views", "subscriptions", "webhooks", "api_keys"):
            getattr(user, related).all().delete()
        Session.objects.filter(account=user.pk).delete()
        user.username, user.email, user.first_name, user.last_name = new, "", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save()
    return len(users)


def _rename(model: type[Model], column: str, name: str, new: str) -> None:
    model._default_manager.filter(**{column: name}).update(**{column: new})


def _forget_names(address: str) -> None:
    """Forget the address where it only says who somebody is."""
    SignIn.objects.filter(address__iexact=address).delete()
    Maintainer.objects.filter(address__iexact=address).delete()
    for report in Report.objects.filter(recipients__icontains=address).only("pk", "recipients"):
        kept: Sequence[str] = [each for each in report.recipients if address not in str(each).lower()]
        Report.objects.filter(pk=report.pk).update(recipients=kept)
