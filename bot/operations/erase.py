"""Erase a person's data on request: what they wrote and their account go, facts and counts stay.

What stays, since it is public elsewhere and is evidence: what git says of commits, and mails that we sent. Their
address stays in one place, as one that gets no mail: to forget it would mean to write to it again.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q

from bot.archives.sources.raw import head_of
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.replies.which_report.report_lookup import person_keys
from tracker.domain.events import EventKind
from tracker.models import (
    Commit,
    Correspondent,
    DeliveryFailure,
    Event,
    FaultMail,
    Mailing,
    MailTransition,
    Maintainer,
    Message,
    PasswordAttempt,
    PendingReference,
    RateCalendar,
    RawMessage,
    Report,
    SecondOpinion,
    SendingStop,
    SignIn,
    Suggestion,
    TextRevision,
    ToolOutput,
)
from tracker.services.accounts.sessions import end_all
from tracker.services.reports.folding import fold
from tracker.services.reports.report_summary import refresh

NOBODY = "erased@erased.invalid"
NOTE = "erased on request"
_EMPTY = zlib.compress(b"")
# Where an account's name says who did something.
_NAMED: Sequence[tuple[type[Model], str]] = (
    (Event, "actor"),
    (Suggestion, "decided_by"),
    (MailTransition, "by"),
    (SendingStop, "by"),
    (SendingStop, "ended_by"),
    (TextRevision, "by"),
    (ToolOutput, "submitted_by"),
)


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
    names = {address, *person_keys(Address(name, address) for name in set(mails.values_list("author_name", flat=True)))}
    ids = list(mails.values_list("message_id", flat=True))
    sources = [*mails.values_list("source", flat=True), *_unfiled(address)]
    reports = set(mails.values_list("report", flat=True))
    # The digest stays, by which the mail is known if an archive still has it.
    RawMessage.objects.filter(pk__in=sources).update(compressed=_EMPTY, error="", erased_at=now)
    mails.update(author_name="", author_email=NOBODY, own_text="", subject="", signature="")
    Event.objects.filter(message_id__in=ids).update(quote="")
    Suggestion.objects.filter(message_id__in=ids).update(quote="", why="")
    SecondOpinion.objects.filter(message_id__in=ids).delete()
    PendingReference.objects.filter(source__in=sources).delete()
    accounts, assigned = _close_accounts(address)
    reports |= assigned | _forget_names(address, names)
    Correspondent.objects.update_or_create(
        address=address, defaults={"mailing": Mailing.OPTED_OUT, "note": NOTE, "since": now}
    )
    fold(sorted(reports))
    return Erased(len(sources), accounts)


def _unfiled(address: str) -> Iterator[int]:
    """Yield the stored mails of theirs that no report has: quarantined, or waiting for one."""
    filed = Message.objects.filter(source=OuterRef("pk"))
    rows = RawMessage.objects.filter(~Exists(filed), erased_at=None)
    for row in rows.iterator(chunk_size=50):
        head = head_of(row.raw)
        if address.encode() in head.lower() and parse(head + b"\n\n").author.email == address:
            yield row.pk


def _close_accounts(address: str) -> tuple[int, set[int]]:
    """Close accounts with this address; what they did is that of a number from now on. Return how many, and which
    reports were ever assigned to them.
    """
    assigned: set[int] = set()
    users = list(get_user_model()._default_manager.filter(email__iexact=address))
    for user in users:
        name, new = user.get_username(), f"erased-{user.pk}"
        for model, column in _NAMED:
            model._default_manager.filter(**{column: name}).update(**{column: new})
        assignments = Event.objects.filter(kind=EventKind.ASSIGNED, remark=name)
        assigned |= set(assignments.values_list("report", flat=True))
        assignments.update(remark=new)
        PasswordAttempt.objects.filter(account=name.lower()).delete()
        for related in ("views", "subscriptions", "webhooks", "api_keys"):
            getattr(user, related).all().delete()
        end_all(user.pk)
        user.username, user.email, user.first_name, user.last_name = new, "", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save()
    return len(users), assigned


def _forget_names(address: str, names: Collection[str]) -> set[int]:
    """Forget the address, and the names that came with it, where they only say who somebody is. Return which reports
    had one.
    """
    SignIn.objects.filter(address__iexact=address).delete()
    Maintainer.objects.filter(address__iexact=address).delete()
    FaultMail.objects.filter(address__iexact=address).delete()
    RateCalendar.objects.filter(key=address).delete()
    DeliveryFailure.objects.filter(address__iexact=address).delete()
    # Whom a robot's mail was sent to counts as the author until git says who it is.
    guessed = Commit.objects.filter(author_from_report=True, author_email__iexact=address)
    guessed.update(author_name="", author_email="", author_from_report=False)
    touched = set()
    known = Q(recipients__icontains=address) | Q(authors__icontains=address)
    for report in Report.objects.filter(known).select_related("culprit").only("recipients", "authors", "culprit"):
        recipients = [each for each in report.recipients if str(each).lower() not in names]
        by_git = report.culprit.author_email == address
        authors = report.authors if by_git else [each for each in report.authors if str(each).lower() not in names]
        if (recipients, authors) != (report.recipients, report.authors):
            Report.objects.filter(pk=report.pk).update(recipients=recipients, authors=authors)
            touched.add(report.pk)
    refresh(touched)
    return touched
