"""`/outbox/` and `/outbox/<id>/`: outgoing mail, and what operators do with it.

Sent mail is public. Only operators see the text of other mail, so that nobody else can post it in our name before us,
and what goes to one subscriber. What needs a person comes first, then what is sent automatically. The pages take a
constant number of queries.

An action (approve, hold, cancel, resend) is described for confirmation, then carried out mail by mail. Operators
approve the text that they saw: a mail that was composed anew since, or is about to be, is left as it is, as is one
whose state does not allow the action, and the summary says how many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.db.models import Count, QuerySet
from django.db.models.functions import Length
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

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
from tracker.pages.http import error_response, is_key, username
from tracker.services import mail_transitions
from tracker.services.accounts import SEND
from tracker.services.mail_transitions import archives_with_copies

# --- Data of the pages ---

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
    sections = [_section(*fields, with_people=with_people) for fields in SECTIONS]
    in_doubt = any(section.in_doubt for section in sections)
    people = Correspondent.objects.exclude(mailing=Mailing.OPTED_IN).order_by("-since", "pk")
    return Overview(
        [section for section in sections if section.mails],
        mail_transitions.stopped(),
        archives_with_copies() if in_doubt else (),
        list(people[:PAGE]) if with_people else (),
    )


def _section(name: str, description: str, states: tuple[OutgoingState, ...], *, with_people: bool) -> OutboxSection:
    rows = _rows(with_people)
    mails = [mail for state in states for mail in rows.filter(state=state)[: ROWS + 1]]
    actions = actions_for(mails[-1:])
    more = len(mails) > ROWS
    return OutboxSection(
        name, description, mails[:ROWS], actions, states[-1] if more else "", S.IN_DOUBT in states and bool(mails)
    )


def load_outbox(state: str = "", before: int | None = None, *, everything: bool = False) -> Outbox:
    """Return a page of mails, newest first; only those of a state, or before a key, if given."""
    rows = _rows(everything)
    if state:
        rows = rows.filter(state=OutgoingState(state))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    mails = list(rows[: PAGE + 1])
    return Outbox(mails[:PAGE], mails[PAGE - 1].pk if len(mails) > PAGE else None, actions_for(mails) if state else ())


def _rows(everything: bool = True) -> QuerySet[OutgoingMail]:
    """Return the mails; without `everything`, not those that one person asked for."""
    rows = OutgoingMail.objects.annotate(size=Length("raw")).select_related("report__culprit")
    rows = rows if everything else rows.exclude(purpose__startswith=Purpose.SUBSCRIPTION)
    return rows.defer("raw", "body", "people").order_by("-pk")


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


def load_page(pk: int, *, everything: bool = False) -> MailPage:
    """Return the page of a mail; raise Http404 if there is none.

    Only who may see `everything` sees the text of an unsent mail: nobody else can post it in our name before us.
    """
    mail = OutgoingMail.objects.select_related("report__culprit").filter(pk=pk).first()
    if mail is None or (mail.purpose.startswith(Purpose.SUBSCRIPTION) and not everything):
        raise Http404("there is no such mail")
    hidden = mail.sent_at is None and not everything
    raw = bytes(mail.raw).decode("utf-8", "replace").replace("\r\n", "\n")
    people = [Person(*fields) for fields in mail.people] or [
        Person(address, "", "To", "") for address in mail.recipients
    ]
    return MailPage(
        mail,
        hidden,
        mail.body or raw.partition("\n\n")[2],  # old rows have no separate body
        raw,
        [person for person in people if person.header],
        [person for person in people if not person.header],
        list(mail.transitions.order_by("-pk")[:PAGE])[::-1],
        list(mail.delivery_failures.all()[:PAGE]),
        archives_with_copies() if mail.state == S.IN_DOUBT else (),
        actions_for([mail]),
    )


# --- Actions on mails ---

_DESCRIPTIONS = {
    "approve": "They are sent as soon as they are due.",
    "hold": "They stay in the outbox until they are approved.",
    "cancel": "They are never sent. Copies that were already delivered are not recalled.",
    "resend": "They are sent again with the same Message-ID. Archives and most mail programs drop the second copy, but"
    " some recipients may see it twice.",
}
_DONE = {"approve": "approved", "hold": "held", "cancel": "cancelled", "resend": "queued again"}


@dataclass(frozen=True, slots=True)
class MailAction:
    """An action, the mails that it applies to, and those that it does not."""

    name: str
    mails: Sequence[OutgoingMail]
    excluded: Sequence[OutgoingMail]

    @classmethod
    def for_mails(cls, action: str, mails: Sequence[OutgoingMail], seen: Collection[str] = ()) -> MailAction:
        """`seen`: the versions that the operator saw; none for a mail that was chosen from a list."""
        allowed_states = mail_transitions.ACTIONS[action][1]
        versions = {version.partition("@")[0]: version for version in seen}
        applicable = [
            mail
            for mail in mails
            if mail.state in allowed_states
            and not _must_wait(action, mail)
            and (action != "approve" or versions.get(str(mail.pk), mail.version) == mail.version)
        ]
        return cls(action, applicable, [mail for mail in mails if mail not in applicable])

    @property
    def description(self) -> str:
        """What the action does."""
        return _DESCRIPTIONS[self.name]

    @property
    def in_doubt(self) -> bool:
        """Whether one of the mails may already have been sent."""
        return any(mail.state == OutgoingState.IN_DOUBT for mail in self.mails)

    def carry_out(self, username: str, now: datetime, reason: str) -> tuple[int, int]:
        """Carry it out; return how many mails changed state, and how many did not."""
        done = sum(
            mail_transitions.apply_action(mail.pk, self.name, username, now, reason.strip(), mail.composed_at)
            for mail in self.mails
        )
        return done, len(self.mails) - done + len(self.excluded)

    def summary(self, done: int, unchanged: int) -> str:
        """Return the outcome in a sentence."""
        mails = "1 mail" if done == 1 else f"{done} mails"
        left = f"; {unchanged} not changed, because they are in another state or were recomposed" if unchanged else ""
        return f"{mails} {_DONE[self.name]}{left}."


def _must_wait(action: str, mail: OutgoingMail) -> bool:
    """A mail that is about to be recomposed can't be approved: its text is not what was reviewed."""
    return action == "approve" and mail.stale


# --- Views ---


def outbox(request: HttpRequest) -> HttpResponse:
    """Show an overview by state; `?state=held` lists one state, `?before=KEY` older mail."""
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    if state and state not in OutgoingState.values:
        return error_response(f"state: expected one of {', '.join(OutgoingState.values)}; found {state[:40]!r}")
    if before and not is_key(before):
        return error_response(f"before: expected a number; found {before[:40]!r}")
    may_act = request.user.has_perm(SEND)
    # How many mails are in each state but those that have ended, of which there are many
    rows = OutgoingMail.objects.exclude(state__in=ENDED).order_by().values_list("state")
    waiting = dict(rows.annotate(number=Count("pk")))
    states = [(value, label, waiting.get(value, 0)) for value, label in OutgoingState.choices]
    context = {"state": state, "states": states, "may_act": may_act}
    if not (state or before or "all" in request.GET):
        return render(request, "outbox/overview.html", {**context, "page": overview(with_people=may_act)})
    return render(
        request,
        "outbox/list.html",
        {**context, "page": load_outbox(state, int(before) if before else None, everything=may_act)},
    )


def mail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one mail: its text, recipients with reasons, history and raw form."""
    may_act = request.user.has_perm(SEND)
    return render(request, "outbox/mail.html", {"page": load_page(pk, everything=may_act), "may_act": may_act})


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the bytes as composed, as plain text that browsers do not render as HTML."""
    page = load_page(pk, everything=request.user.has_perm(SEND))
    if page.hidden:
        return HttpResponseForbidden("shown once it has been sent", content_type="text/plain; charset=utf-8")
    response = HttpResponse(bytes(page.mail.raw), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


@login_required
@permission_required(SEND, raise_exception=True)
def act(request: HttpRequest) -> HttpResponse:
    """Approve, hold, cancel or resend mails: GET asks for confirmation, POST carries it out."""
    params = request.POST if request.method == "POST" else request.GET
    action, ids = params.get("verb", ""), params.getlist("id")
    if action not in mail_transitions.ACTIONS:
        return error_response(f"verb: expected one of {', '.join(mail_transitions.ACTIONS)}; found {action[:40]!r}")
    if invalid := [key for key in ids if not is_key(key)]:
        return error_response(f"id: expected a number; found {invalid[0][:40]!r}")
    # The mails with these keys, in order of their keys
    chosen = list(_rows().filter(pk__in=[int(key) for key in ids][:PAGE]).order_by("pk"))
    mail_action = MailAction.for_mails(action, chosen, params.getlist("version"))
    if request.method != "POST":
        return render(request, "outbox/confirm.html", {"action": mail_action})
    done, unchanged = mail_action.carry_out(username(request), timezone.now(), params.get("reason", ""))
    messages.info(request, mail_action.summary(done, unchanged))
    return redirect("outbox")


@require_POST
@login_required
@permission_required(SEND, raise_exception=True)
def stop(request: HttpRequest) -> HttpResponse:
    """The stop switch: `do` stop or go."""
    command, now = request.POST.get("do", ""), timezone.now()
    if command == "stop":
        mail_transitions.stop_sending(username(request), now, request.POST.get("reason", ""))
    elif command == "go":
        if not mail_transitions.resume_sending(username(request), now) and (stays := mail_transitions.stopped()):
            messages.info(request, f"Sending stays stopped: {stays.reason}.")
    else:
        return error_response(f"do: expected stop or go; found {command[:40]!r}")
    return redirect("outbox")
