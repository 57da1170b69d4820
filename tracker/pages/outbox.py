"""The data of the outbox pages, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.db.models.functions import Length
from django.http import Http404

from tracker.models import (
    Archive,
    Correspondent,
    DeliveryFailure,
    Mailing,
    MailTransition,
    OutgoingMail,
    OutgoingState,
    Purpose,
    SendingStop,
)
from tracker.services import mail_transitions
from tracker.services.outgoing.archive_copies import archives_with_copies

PAGE = 100
ROWS = 20  # per section
S = OutgoingState
# What needs a person first, then what is sent automatically.
SECTIONS: Sequence[tuple[str, str, tuple[OutgoingState, ...]]] = (
    ("In doubt", "It is not known whether these were sent.", (S.IN_DOUBT,)),
    ("Failed", "A server rejected these, with this error.", (S.FAILED,)),
    ("Waiting for approval", "", (S.COMPOSED,)),
    ("Held", "", (S.HELD,)),
    ("Queue", "These are sent automatically.", (S.SENDING, S.APPROVED)),
    ("Recently sent", "", (S.SENT,)),
)


ENDED = (S.SENT, S.CANCELLED)


@dataclass(frozen=True, slots=True)
class Person:
    """A recipient, or an address that was left out. `header`: To, Cc, or "" if left out."""

    email: str
    name: str
    header: str
    reason: str


@dataclass(frozen=True, slots=True)
class MailPage:
    """One mail: its text, its raw form, its recipients, those left out, and its history."""

    mail: OutgoingMail
    hidden: bool
    body: str
    raw: str
    recipients: Sequence[Person]
    left_out: Sequence[Person]
    history: Sequence[MailTransition]
    failures: Sequence[DeliveryFailure]
    archives: Sequence[Archive]
    actions: Sequence[str]


@dataclass(frozen=True, slots=True)
class OutboxSection:
    """Mails of some states, newest first. `state`: the state to list for more, "" if these are all."""

    name: str
    description: str
    mails: Sequence[OutgoingMail]
    actions: Sequence[str]
    state: str
    in_doubt: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """The outbox at a glance."""

    sections: Sequence[OutboxSection]
    stop: SendingStop | None
    archives: Sequence[Archive]
    suppressed: Sequence[Correspondent]


@dataclass(frozen=True, slots=True)
class Outbox:
    """One page of mails, newest first; `older` is the key of the next page, None on the last."""

    mails: Sequence[OutgoingMail]
    older: int | None
    actions: Sequence[str]


def overview(*, with_people: bool = False) -> Overview:
    """Return the newest mails of each state. `with_people`: also the addresses that get no mail."""
    sections = [_section(*each, with_people=with_people) for each in SECTIONS]
    in_doubt = any(each.in_doubt for each in sections)
    people = Correspondent.objects.exclude(mailing=Mailing.OPTED_IN).order_by("-since", "pk")
    return Overview(
        [each for each in sections if each.mails],
        mail_transitions.stopped(),
        archives_with_copies() if in_doubt else (),
        list(people[:PAGE]) if with_people else (),
    )


def waiting_numbers() -> dict[str, int]:
    """Return how many mails are in each state but those that have ended, of which there are many."""
    rows = OutgoingMail.objects.exclude(state__in=ENDED).order_by().values_list("state")
    return dict(rows.annotate(number=Count("pk")))


def _section(name: str, description: str, states: tuple[OutgoingState, ...], *, with_people: bool) -> OutboxSection:
    rows = _rows(with_people)
    found = [mail for state in states for mail in rows.filter(state=state)[: ROWS + 1]]
    actions = actions_for(found[-1:])
    more = len(found) > ROWS
    return OutboxSection(
        name, description, found[:ROWS], actions, states[-1] if more else "", S.IN_DOUBT in states and bool(found)
    )


def outbox(state: str = "", before: int | None = None, *, everything: bool = False) -> Outbox:
    """Return a page of mails, newest first; only those of a state, or before a key, if given."""
    rows = _rows(everything)
    if state:
        rows = rows.filter(state=OutgoingState(state))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: PAGE + 1])
    return Outbox(found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None, actions_for(found) if state else ())


def _rows(everything: bool = True) -> QuerySet[OutgoingMail]:
    """Return the mails; without `everything`, not those that one person asked for."""
    rows = OutgoingMail.objects.annotate(size=Length("raw")).select_related("report__culprit")
    rows = rows if everything else rows.exclude(purpose__startswith=Purpose.SUBSCRIPTION)
    return rows.defer("raw", "body", "people").order_by("-pk")


def chosen(keys: Sequence[int]) -> list[OutgoingMail]:
    """Return the mails with these keys, in order of their keys."""
    return list(_rows().filter(pk__in=keys[:PAGE]).order_by("pk"))


def actions_for(mails: Sequence[OutgoingMail]) -> list[str]:
    """Return the actions that apply to all of these mails."""
    states = {mail.state for mail in mails}
    return [
        action
        for action, (_, allowed_states) in mail_transitions.ACTIONS.items()
        if states and states <= allowed_states and action != _no_op(states)
    ]


def _no_op(states: set[str]) -> str:
    """Return the action that would change nothing, or ""."""
    return "hold" if states == {S.HELD} else ""


def page(pk: int, *, everything: bool = False) -> MailPage:
    """Return the page of a mail; raise Http404 if there is none.

    Only who may see `everything` sees the text of an unsent mail: nobody else can post it in our name before us.
    """
    mail = OutgoingMail.objects.select_related("report__culprit").filter(pk=pk).first()
    if mail is None or (mail.purpose.startswith(Purpose.SUBSCRIPTION) and not everything):
        raise Http404("there is no such mail")
    hidden = mail.sent_at is None and not everything
    raw = bytes(mail.raw).decode("utf-8", "replace").replace("\r\n", "\n")
    people = [Person(*each) for each in mail.people] or [Person(each, "", "To", "") for each in mail.recipients]
    return MailPage(
        mail,
        hidden,
        mail.body or raw.partition("\n\n")[2],  # old rows have no separate body
        raw,
        [each for each in people if each.header],
        [each for each in people if not each.header],
        list(mail.transitions.order_by("-pk")[:PAGE])[::-1],
        list(mail.delivery_failures.all()[:PAGE]),
        archives_with_copies() if mail.state == S.IN_DOUBT else (),
        actions_for([mail]),
    )
