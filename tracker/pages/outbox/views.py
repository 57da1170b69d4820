"""`/outbox/` and `/outbox/<id>/`: outgoing mail. Sent mail is public; only operators see the rest, and act on it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.models import OutgoingState
from tracker.pages.http import error_response, is_key, username
from tracker.pages.outbox import queries
from tracker.pages.outbox.actions import MailAction
from tracker.services import mail_transitions
from tracker.services.accounts.roles import SEND


def outbox(request: HttpRequest) -> HttpResponse:
    """Show an overview by state; `?state=held` lists one state, `?before=KEY` older mail."""
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    if state and state not in OutgoingState.values:
        return error_response(f"state: expected one of {', '.join(OutgoingState.values)}; found {state[:40]!r}")
    if before and not is_key(before):
        return error_response(f"before: expected a number; found {before[:40]!r}")
    may_act = request.user.has_perm(SEND)
    waiting = queries.waiting_numbers()
    states = [(value, label, waiting.get(value, 0)) for value, label in OutgoingState.choices]
    context = {"state": state, "states": states, "may_act": may_act}
    if not (state or before or "all" in request.GET):
        return render(request, "outbox/overview.html", {**context, "page": queries.overview(with_people=may_act)})
    return render(
        request,
        "outbox/list.html",
        {**context, "page": queries.outbox(state, int(before) if before else None, everything=may_act)},
    )


def mail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one mail: its text, recipients with reasons, history and raw form."""
    may_act = request.user.has_perm(SEND)
    return render(request, "outbox/mail.html", {"page": queries.page(pk, everything=may_act), "may_act": may_act})


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the bytes as composed, as plain text that browsers do not render as HTML."""
    page = queries.page(pk, everything=request.user.has_perm(SEND))
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
    if invalid := [each for each in ids if not is_key(each)]:
        return error_response(f"id: expected a number; found {invalid[0][:40]!r}")
    chosen = queries.chosen([int(each) for each in ids])
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
