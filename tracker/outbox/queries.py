"""What the pages of outgoing mail show, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404

from tracker.models import OutgoingMail, OutgoingState

PAGE = 100


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who was thought of. `place`: To, Cc, or "" for left out."""

    email: str
    name: str
    place: str
    why: str


@dataclass(frozen=True, slots=True)
class MailPage:
    """One mail: how it reads, the bytes as text, and everybody who gets it or was left out."""

    mail: OutgoingMail
    body: str
    raw: str
    told: Sequence[Person]
    left_out: Sequence[Person]


@dataclass(frozen=True, slots=True)
class Outbox:
    """One page of mails, newest first; `older` is the key to go on with, None at the end."""

    mails: Sequence[OutgoingMail]
    older: int | None


def outbox(state: str = "", before: int | None = None) -> Outbox:
    """The newest mails, those of one state alone, or those before a key."""
    rows = OutgoingMail.objects.select_related("report__culprit").defer("raw", "body", "people").order_by("-pk")
    if state:
        rows = rows.filter(state=OutgoingState(state))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: PAGE + 1])
    return Outbox(found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None)


def page(pk: int) -> MailPage:
    """Http404 where there is no such mail."""
    mail = OutgoingMail.objects.select_related("report__culprit").filter(pk=pk).first()
    if mail is None:
        raise Http404("there is no such mail")
    raw = bytes(mail.raw).decode("utf-8", "replace").replace("\r\n", "\n")
    people = [Person(*each) for each in mail.people] or [Person(each, "", "To", "") for each in mail.recipients]
    return MailPage(
        mail,
        mail.body or raw.partition("\n\n")[2],  # mails of before their text was kept beside them
        raw,
        [each for each in people if each.place],
        [each for each in people if not each.place],
    )
