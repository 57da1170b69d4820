"""`/outbox/` and `/outbox/<id>/`: outgoing mail, and what operators do with it.

Sent mail is public. Only operators see the text of other mail, so that nobody else can post it in our name before us,
and what goes to one subscriber or answers one person's commands. What needs a person comes first, then what is sent
automatically. The pages take a constant number of queries.

An action (approve, hold, cancel, resend) is described for confirmation, then carried out mail by mail. Operators
approve the text that they saw: a mail that was composed anew since, or is about to be, is left as it is, as is one
whose state does not allow the action, and the summary says how many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.db.models.functions import Length
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.domain.events import JOB
from tracker.domain.text import counted
from tracker.models import PERSONAL, Correspondent, Mailing, OutgoingMail, OutgoingState
from tracker.pages.http import error_response, is_key, key_in, permission_required, username
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
FOR_PEOPLE = 4  # sections that need a person
ENDED = (S.SENT, S.CANCELLED)


@dataclass(frozen=True, slots=True)
class OutboxSection:
    """Mails of some states, newest first. `state`: the state to list for more, "" if these are all."""

    name: str
    description: str
    mails: Sequence[OutgoingMail]
    actions: Sequence[str]
    state: str
    in_doubt: bool


def overview(*, with_people: bool) -> dict[str, Any]:
    """Return the newest mails of each state. `with_people`: also the addresses that get no mail."""
    sections = []
    for name, description, states in SECTIONS:
        rows = _rows(with_people)
        mails = [mail for state in states for mail in rows.filter(state=state)[: ROWS + 1]]
        state = mails[ROWS].state if len(mails) > ROWS else ""
        if S.APPROVED in states and not settings.EMAIL_URL:
            description = "EMAIL_URL names no mail server: these wait."
        if mails:
            actions, in_doubt = actions_for(mails[-1:]), S.IN_DOUBT in states
            sections.append(OutboxSection(name, description, mails[:ROWS], actions, state, in_doubt))
    people = Correspondent.objects.exclude(mailing=Mailing.OPTED_IN).order_by("-since", "pk")
    return {
        "sections": sections,
        "stop": mail_transitions.stopped(),
        "archives": archives_with_copies() if any(section.in_doubt for section in sections) else (),
        "suppressed": list(people[:PAGE]) if with_people else (),
    }


def listed(state: str, before: int | None, *, everything: bool) -> dict[str, Any]:
    """Return a page of mails, newest first, of a state, or before a key, if given. `older`: the key of the next page,
    None on the last.
    """
    rows = _rows(everything)
    if state:
        rows = rows.filter(state=OutgoingState(state))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    mails = list(rows[: PAGE + 1])
    older = mails[PAGE - 1].pk if len(mails) > PAGE else None
    return {"mails": mails[:PAGE], "older": older, "actions": actions_for(mails) if state else ()}


def _rows(everything: bool = True) -> QuerySet[OutgoingMail]:
    """Return the mails; without `everything`, not those that one person asked for."""
    rows = OutgoingMail.objects.annotate(size=Length("raw")).select_related("report__culprit")
    for personal in () if everything else PERSONAL:
        rows = rows.exclude(purpose__startswith=personal)
    return rows.defer("raw", "body", "people").order_by("-pk")


def actions_for(mails: Sequence[OutgoingMail]) -> list[str]:
    """Return the actions that apply to all of these mails, but what would change nothing."""
    states = {mail.state for mail in mails}
    return [
        action
        for action, (_, allowed_states) in mail_transitions.ACTIONS.items()
        if states and states <= allowed_states and not (action == "hold" and states == {S.HELD})
    ]


def _visible(pk: int, *, everything: bool) -> tuple[OutgoingMail, bool]:
    """Return a mail, and whether its text is hidden; raise Http404 if there is none.

    Only who may see `everything` sees the text of an unsent mail: nobody else can post it in our name before us. Nor
    do others see the result of a test that somebody asked for in private, which went to no list.
    """
    mail = OutgoingMail.objects.select_related("report__culprit").filter(pk=pk).first()
    if mail is None or (mail.purpose.startswith(PERSONAL) and not everything):
        raise Http404("there is no such mail")
    is_private = JOB in mail.purpose and not mail.lists
    return mail, (mail.sent_at is None or is_private) and not everything


# --- Views ---


def outbox(request: HttpRequest) -> HttpResponse:
    """Show an overview by state; `?state=held` lists one state, `?before=KEY` older mail."""
    state, before = request.GET.get("state", ""), key_in(request.GET, "before")
    if state and state not in OutgoingState.values:
        return error_response(f"state: expected one of {', '.join(OutgoingState.values)}; found {state[:40]!r}")
    may_act = request.user.has_perm(SEND)
    # How many mails are in each state but those that have ended, of which there are many
    rows = OutgoingMail.objects.exclude(state__in=ENDED).order_by().values_list("state")
    waiting = dict(rows.annotate(number=Count("pk")))
    states = [(value, label, waiting.get(value, 0)) for value, label in OutgoingState.choices]
    is_list = state or before is not None or "all" in request.GET
    mails = listed(state, before, everything=may_act) if is_list else overview(with_people=may_act)
    undecided = ", ".join(
        f"{waiting[kinds[0]]} {name.lower()}" for name, _, kinds in SECTIONS[:FOR_PEOPLE] if kinds[0] in waiting
    )
    context = {"state": state, "states": states, "undecided": undecided, "may_act": may_act, **mails}
    return render(request, "outbox.html", context)


def mail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one mail: its text, recipients with reasons, history and raw form."""
    may_act = request.user.has_perm(SEND)
    mail, hidden = _visible(pk, everything=may_act)
    raw = bytes(mail.raw).decode("utf-8", "replace").replace("\r\n", "\n")
    # Recipients, and addresses that were left out, which have no header
    rows = mail.people or [(address, "", "To", "") for address in mail.recipients]
    people = [dict(zip(("email", "name", "header", "reason"), row, strict=True)) for row in rows]
    history = list(mail.transitions.order_by("-pk")[:PAGE])[::-1]
    names = () if may_act else {transition.by for transition in history}
    context = {
        "mail": mail,
        "hidden": hidden,
        "body": mail.body or raw.partition("\n\n")[2],  # old rows have no separate body
        "raw": raw,
        "recipients": [person for person in people if person["header"]],
        "left_out": [person for person in people if not person["header"]],
        "history": history,
        # Whose names, mostly addresses, only operators see
        "people": set(User.objects.filter(username__in=names).values_list("username", flat=True)),
        # What a server returned was mail to us alone.
        "failures": list(mail.delivery_failures.all()[:PAGE]) if may_act else [],
        "archives": archives_with_copies() if mail.state == S.IN_DOUBT else (),
        "actions": actions_for([mail]),
        "editable": mail_transitions.is_editable(mail),
        "may_act": may_act,
    }
    return render(request, "outbox_mail.html", context)


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the bytes as composed, as plain text that browsers do not render as HTML."""
    mail, hidden = _visible(pk, everything=request.user.has_perm(SEND))
    if hidden:
        return error_response("shown once it has been sent", 403)
    return HttpResponse(bytes(mail.raw), content_type="text/plain; charset=utf-8")


_DESCRIPTIONS = {
    "approve": "They are sent as soon as they are due.",
    "hold": "They stay in the outbox until they are approved.",
    "cancel": "They are never sent. Copies that were already delivered are not recalled.",
    "resend": "They are sent again with the same Message-ID. Archives and most mail programs drop the second copy, but"
    " some recipients may see it twice.",
}
_DONE = {"approve": "approved", "hold": "held", "cancel": "cancelled", "resend": "queued again"}


@permission_required(SEND, "only operators can act on outgoing mail")
def act(request: HttpRequest) -> HttpResponse:
    """Approve, hold, cancel or resend mails: GET asks for confirmation, POST carries it out."""
    params = request.POST if request.method == "POST" else request.GET
    action, ids = params.get("verb", ""), params.getlist("id")
    if action not in mail_transitions.ACTIONS:
        return error_response(f"verb: expected one of {', '.join(mail_transitions.ACTIONS)}; found {action[:40]!r}")
    if invalid := [key for key in ids if not is_key(key)]:
        return error_response(f"id: expected a number; found {invalid[0][:40]!r}")
    chosen = list(_rows().filter(pk__in=[int(key) for key in ids][:PAGE]).order_by("pk"))
    seen = {version.partition("@")[0]: version for version in params.getlist("version")}  # none if chosen from a list
    mails = [mail for mail in chosen if _applies(action, mail, seen.get(str(mail.pk), mail.version))]
    excluded = [mail for mail in chosen if mail not in mails]
    if request.method != "POST":
        in_doubt = any(mail.state == S.IN_DOUBT for mail in mails)
        context = {"action": action, "description": _DESCRIPTIONS[action], "in_doubt": in_doubt}
        return render(request, "outbox_confirm.html", {**context, "mails": mails, "excluded": excluded})
    name, now, reason = username(request), timezone.now(), params.get("reason", "").strip()
    done = sum(mail_transitions.apply_action(mail.pk, action, name, now, reason, mail.composed_at) for mail in mails)
    unchanged = len(chosen) - done
    left = f"; {unchanged} not changed, because they are in another state or were recomposed" if unchanged else ""
    messages.info(request, f"{counted(done, 'mail')} {_DONE[action]}{left}.")
    return redirect("outbox")


def _applies(action: str, mail: OutgoingMail, seen: str) -> bool:
    """Whether an action may be carried out on a mail. `seen`: the version that the operator saw."""
    if mail.state not in mail_transitions.ACTIONS[action][1]:
        return False
    return action != "approve" or (not mail.stale and seen == mail.version)  # stale: about to be composed anew


@require_POST
@permission_required(SEND, "only operators can act on outgoing mail")
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
