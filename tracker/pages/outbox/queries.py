"""What the pages of outgoing mail show, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import Http404

from tracker.models import (
    Archive,
    Correspondent,
    DeliveryFailure,
    Mailing,
    MailTransition,
    OutgoingMail,
    OutgoingState,
    SendingStop,
)
from tracker.services import mail_transitions
from tracker.services.outgoing.archive_copies import archives_with_copies

PAGE = 100
ROWS = 20  # of a section
S = OutgoingState
# What waits for a person first, then what goes by itself.
SECTIONS: Sequence[tuple[str, str, tuple[OutgoingState, ...]]] = (
    ("In doubt", "Nobody knows whether these went out.", (S.IN_DOUBT,)),
    ("Failed", "A server refused them, in these words.", (S.FAILED,)),
    ("Waiting for approval", "", (S.COMPOSED,)),
    ("Held", "", (S.HELD,)),
    ("Queue", "These go by themselves.", (S.SENDING, S.APPROVED)),
    ("Sent lately", "", (S.SENT,)),
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who was thought of. `place`: To, Cc, or "" for left out."""

    email: str
    name: str
    place: str
    why: str


@dataclass(frozen=True, slots=True)
class MailPage:
    """One mail: how it reads, the bytes as text, everybody who gets it or was left out, and all that became of it."""

    mail: OutgoingMail
    hidden: bool
    body: str
    raw: str
    told: Sequence[Person]
    left_out: Sequence[Person]
    record: Sequence[MailTransition]
    refusals: Sequence[DeliveryFailure]
    archives: Sequence[Archive]
    verbs: Sequence[str]


@dataclass(frozen=True, slots=True)
class OutboxSection:
    """Mails of one state, newest first; `state` to see more than these, "" where these are all."""

    name: str
    says: str
    mails: Sequence[OutgoingMail]
    verbs: Sequence[str]
    state: str
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """The outbox at a glance."""

    sections: Sequence[OutboxSection]
    stop: SendingStop | None
    archives: Sequence[Archive]
    unwelcome: Sequence[Correspondent]


@dataclass(frozen=True, slots=True)
class Outbox:
    """One page of mails, newest first; `older` is the key to go on with, None at the end."""

    mails: Sequence[OutgoingMail]
    older: int | None
    verbs: Sequence[str]


def overview(*, with_people: bool = False) -> Overview:
    """The newest mails of each state, and what there is to know of those in doubt. `with_people`: who gets no mail."""
    sections = [_section(*each) for each in SECTIONS]
    doubtful = any(each.doubtful for each in sections)
    people = Correspondent.objects.exclude(mailing=Mailing.OPTED_IN).order_by("-since", "pk")
    return Overview(
        [each for each in sections if each.mails],
        mail_transitions.stopped(),
        archives_with_copies() if doubtful else (),
        list(people[:PAGE]) if with_people else (),
    )


def _section(name: str, says: str, states: tuple[OutgoingState, ...]) -> OutboxSection:
    found = [mail for state in states for mail in _rows().filter(state=state)[: ROWS + 1]]
    verbs = verbs_of(found[-1:])
    more = len(found) > ROWS
    return OutboxSection(
        name, says, found[:ROWS], verbs, states[-1] if more else "", S.IN_DOUBT in states and bool(found)
    )


def outbox(state: str = "", before: int | None = None) -> Outbox:
    """The newest mails, those of one state alone, or those before a key."""
    rows = _rows()
    if state:
        rows = rows.filter(state=OutgoingState(state))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: PAGE + 1])
    return Outbox(found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None, verbs_of(found) if state else ())


def _rows() -> QuerySet[OutgoingMail]:
    return OutgoingMail.objects.select_related("report__culprit").defer("raw", "body", "people").order_by("-pk")


def chosen(keys: Sequence[int]) -> list[OutgoingMail]:
    """The mails that somebody wants to act upon, in their order."""
    return list(_rows().filter(pk__in=keys[:PAGE]).order_by("pk"))


def verbs_of(mails: Sequence[OutgoingMail]) -> list[str]:
    """What a person may do to all of these."""
    states = {mail.state for mail in mails}
    return [
        verb
        for verb, (_, within) in mail_transitions.ACTIONS.items()
        if states and states <= within and verb != _idle(states)
    ]


def _idle(states: set[str]) -> str:
    """What would change nothing."""
    return "hold" if states == {S.HELD} else ""


def page(pk: int, *, everything: bool = False) -> MailPage:
    """Http404 where there is no such mail. What has not gone out is shown to those alone who may see `everything`: its
    receivers read it first, and nobody can post it in our name before us.
    """
    mail = OutgoingMail.objects.select_related("report__culprit").filter(pk=pk).first()
    if mail is None:
        raise Http404("there is no such mail")
    hidden = mail.sent_at is None and not everything
    raw = bytes(mail.raw).decode("utf-8", "replace").replace("\r\n", "\n")
    people = [Person(*each) for each in mail.people] or [Person(each, "", "To", "") for each in mail.recipients]
    return MailPage(
        mail,
        hidden,
        mail.body or raw.partition("\n\n")[2],  # mails of before their text was kept beside them
        raw,
        [each for each in people if each.place],
        [each for each in people if not each.place],
        list(mail.moves.order_by("-pk")[:PAGE])[::-1],
        list(mail.refusals.all()[:PAGE]),
        archives_with_copies() if mail.state == S.IN_DOUBT else (),
        verbs_of([mail]),
    )
