"""`/inbox/`: the review queue, and the decisions on suggestions."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.domain.errors import InvalidInput
from tracker.domain.events import EventKind
from tracker.models import Decision, Suggestion
from tracker.pages.http import cleaned, error_response, is_key, username
from tracker.pages.review import queries
from tracker.services.accounts.roles import DECIDE, SEND
from tracker.services.faults import faults
from tracker.services.reports import suggestions

_DECISIONS = {"accept": Decision.ACCEPTED, "reject": Decision.REJECTED}


def inbox(request: HttpRequest) -> HttpResponse:
    """Show the newest of each section, suggestions of one `kind` or `rule` if asked; `?suggestions=KEY` and
    `?quarantine=KEY` page to older rows.
    """
    keys: dict[str, int | None] = {}
    for name in ("suggestions", "quarantine"):
        text = request.GET.get(name, "")
        if text and not is_key(text):
            return error_response(f"{name}: expected a number; found {text[:40]!r}")
        keys[name] = int(text) if text else None
    chosen = queries.SuggestionFilter(cleaned(request.GET, "kind", 60), cleaned(request.GET, "rule", 100))
    may_decide, now = request.user.has_perm(DECIDE), timezone.now()
    context = {
        "faults": faults(now) if request.user.has_perm(SEND) else [],
        "page": queries.inbox(now, keys["suggestions"], keys["quarantine"], chosen),
        "chosen": chosen,
        "others": suggestions.OTHERS,
        "may_decide": may_decide,
        "last": _last_decided(request) if may_decide else [],
    }
    return render(request, "review/queue.html", context)


def _last_decided(request: HttpRequest) -> list[Suggestion]:
    """Return what this session decided last, as far as it is still decided."""
    return list(
        Suggestion.objects.filter(pk__in=request.session.get("last_decided", ())).exclude(decision=Decision.OPEN)
    )


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Record one `decision`: accept, reject, or set, with another event kind in `instead`; redirect to the next."""
    suggestion = get_object_or_404(Suggestion.objects.select_related("report"), pk=pk)
    choice = request.POST.get("decision", "")
    choice = request.POST.get("instead", "") if choice == "set" else choice
    decision = _DECISIONS.get(choice, Decision.CHANGED)
    instead = EventKind(choice) if choice in suggestions.OTHERS else None
    if decision is Decision.CHANGED and instead is None:
        return error_response(f"decision: expected accept, reject or another state; found {choice[:40]!r}")
    if instead == suggestion.kind:
        decision = Decision.ACCEPTED
    if suggestions.decide(suggestion, decision, username(request), timezone.now(), instead):
        request.session["last_decided"] = [pk]
    return _back(request, pk)


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def decide_many(request: HttpRequest) -> HttpResponse:
    """Accept or reject all `chosen` suggestions, or accept those of a `rule` that was right often enough."""
    rule, keys = cleaned(request.POST, "rule", 100), request.POST.getlist("chosen")
    decision = _DECISIONS.get("accept" if rule else request.POST.get("decision", ""))
    if decision is None:
        return error_response("decision: expected accept or reject")
    if not rule and not (0 < len(keys) <= suggestions.AT_ONCE and all(map(is_key, keys))):
        return error_response(f"chosen: expected 1 to {suggestions.AT_ONCE} suggestions; found {len(keys)}")
    try:
        newest = cleaned(request.POST, "newest", 20)  # what came in after the page was loaded was not seen
        wanted = (
            suggestions.of_precise_rule(rule, suggestions.AT_ONCE, int(newest) if is_key(newest) else 0)
            if rule
            else [int(each) for each in keys]
        )
    except InvalidInput as error:
        return error_response(str(error))
    if decided := suggestions.decide_many(wanted, decision, username(request), timezone.now()):
        request.session["last_decided"] = decided  # nothing was open: the last one can still be undone
    return _back(request, min(wanted, default=0))


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo a decision: its event is reversed, and the suggestion is open again."""
    suggestion = get_object_or_404(Suggestion.objects.select_related("report"), pk=pk)
    suggestions.take_back(suggestion, username(request), timezone.now())
    return _back(request, pk + 1)


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def undo_last(request: HttpRequest) -> HttpResponse:
    """Undo all that this session decided last."""
    own = Suggestion.objects.filter(decided_by=username(request)).select_related("report")  # others' decisions stay
    decided = list(own.filter(pk__in=request.session.pop("last_decided", ())))
    for each in decided:
        suggestions.take_back(each, username(request), timezone.now())
    return _back(request, max((each.pk for each in decided), default=0) + 1)


def _back(request: HttpRequest, pk: int) -> HttpResponse:
    """Return to the queue as it was filtered, at the suggestion after this one."""
    chosen = queries.SuggestionFilter(cleaned(request.GET, "kind", 60), cleaned(request.GET, "rule", 100))
    waiting = chosen.of(Suggestion.objects.filter(decision=Decision.OPEN)).values_list("pk", flat=True)
    following = waiting.filter(pk__lt=pk).order_by("-pk").first() or waiting.order_by("pk").first() or 0
    query = QueryDict(chosen.url.removeprefix("?"), mutable=True)
    if waiting.filter(pk__gt=following)[: queries.SUGGESTIONS].count() == queries.SUGGESTIONS:  # not on the first page
        query["suggestions"] = str(following + 1)
    return redirect(f"{reverse('inbox')}{'?' if query else ''}{query.urlencode()}#s{following}")
