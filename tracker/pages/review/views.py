"""`/inbox/`: the review queue, and the decisions on suggestions."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.domain.events import EventKind
from tracker.models import Decision, Suggestion
from tracker.pages.http import error_response, is_key, username
from tracker.pages.review import queries
from tracker.services import suggestions
from tracker.services.accounts.roles import DECIDE


def inbox(request: HttpRequest) -> HttpResponse:
    """Show the newest of each section; `?suggestions=KEY` and `?quarantine=KEY` page to older rows."""
    keys: dict[str, int | None] = {}
    for name in ("suggestions", "quarantine"):
        text = request.GET.get(name, "")
        if text and not is_key(text):
            return error_response(f"{name}: expected a number; found {text[:40]!r}")
        keys[name] = int(text) if text else None
    may_decide = request.user.has_perm(DECIDE)
    context = {
        "page": queries.inbox(timezone.now(), keys["suggestions"], keys["quarantine"]),
        "others": suggestions.OTHERS,
        "may_decide": may_decide,
        "last": Suggestion.objects.filter(pk=request.session.get("decided", 0)).first() if may_decide else None,
    }
    return render(request, "review/queue.html", context)


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Record one `decision`: accept, reject, or set, with another event kind in `instead`; redirect to the next."""
    suggestion = get_object_or_404(Suggestion.objects.select_related("report"), pk=pk)
    choice = request.POST.get("decision", "")
    choice = request.POST.get("instead", "") if choice == "set" else choice
    decision = {"accept": Decision.ACCEPTED, "reject": Decision.REJECTED}.get(choice, Decision.CHANGED)
    instead = EventKind(choice) if choice in suggestions.OTHERS else None
    if decision is Decision.CHANGED and instead is None:
        return error_response(f"decision: expected accept, reject or another state; found {choice[:40]!r}")
    if instead == suggestion.kind:
        decision = Decision.ACCEPTED
    if suggestions.decide(suggestion, decision, username(request), timezone.now(), instead):
        request.session["decided"] = pk
    return redirect(f"{reverse('inbox')}#s{_next_open(pk)}")


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo a decision: its event is reversed, and the suggestion is open again."""
    suggestions.take_back(
        get_object_or_404(Suggestion.objects.select_related("report"), pk=pk), username(request), timezone.now()
    )
    request.session.pop("decided", None)
    return redirect(f"{reverse('inbox')}#s{pk}")


def _next_open(pk: int) -> int:
    """Return the key of the next suggestion, of the previous one at the end, or 0."""
    waiting = Suggestion.objects.filter(decision=Decision.OPEN).values_list("pk", flat=True)
    return waiting.filter(pk__lt=pk).order_by("-pk").first() or waiting.order_by("pk").first() or 0
