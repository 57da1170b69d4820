"""`/v5.6/`: the triage table of a release, and the report actions taken in it."""

from __future__ import annotations

import secrets
from typing import NoReturn

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.domain import versions
from tracker.domain.errors import InvalidInput
from tracker.models import Release, SavedView
from tracker.pages.http import back, is_key, person, refused, signed_in, told
from tracker.pages.triage import counts, queries
from tracker.pages.triage.action_keys import ACTION_KEYS, BY_NAME, ActionKey
from tracker.pages.triage.controls import controls
from tracker.pages.triage.query import GROUPS, ORDERS, InvalidQuery, TriageQuery
from tracker.services import report_actions
from tracker.services.accounts.roles import permit_of
from tracker.services.enqueue import enqueue


def triage(request: HttpRequest, version: str) -> HttpResponse:
    """Show both sections as the URL requests (filters.py, question.py); 400 names an invalid parameter."""
    now = timezone.now()
    releases = counts.stamped(Release.objects.filter(version=version))
    try:
        question = TriageQuery.from_query(request.GET, now)
    except InvalidQuery as mistake:
        return refused(str(mistake)) if releases.exists() else _no_release(version)
    release = releases.annotate(**queries.known(question.asked)).first()
    if release is None:
        return _no_release(version)
    if wrong := queries.misspelt(question.asked, release):
        return refused("; ".join(wrong))
    sections = queries.sections(version, question, now)
    shown = {
        "release": release,
        "sections": sections,
        "question": question,
        "controls": controls(question, counts.counts(release)),
        "orders": ORDERS,
        "groups": GROUPS,
        "verbs": ACTION_KEYS,
        "views": views_of(request),
        "may_change": request.user.is_authenticated,
    }
    return render(request, "triage/table.html", shown)


def _no_release(version: str) -> NoReturn:
    raise Http404(f"there is no release {version}")


def views_of(request: HttpRequest) -> QuerySet[SavedView]:
    """Return the saved views that this user sees: their own, and the shared ones."""
    return SavedView.objects.filter(Q(shared=True) | Q(owner=request.user.pk or 0))[:60]


@require_POST
@signed_in
def change(request: HttpRequest) -> HttpResponse:
    """Apply an action to the selected rows (`row`, each PK:REVISION); redirect back, or return the updated rows."""
    word, rows = request.POST.get("do", ""), request.POST.getlist("row")
    verb = BY_NAME.get(word)
    if verb is None:
        return refused(f"do: expected one of {', '.join(BY_NAME)}; found {word[:40]!r}")
    seen = {}
    for each in rows:
        pk, _, revision = each.partition(":")
        if not (is_key(pk) and is_key(revision)):
            return refused(f"row: expected KEY:REVISION; found {each[:40]!r}")
        seen[int(pk)] = int(revision)
    if not 0 < len(seen) <= report_actions.MOST:
        return refused(f"row: expected 1 to {report_actions.MOST} rows; found {len(seen)}")
    act, release = _act(request, verb), told(request.POST, "release", 20)
    if release and versions.parse(release) is None:
        return refused(f"release: expected a version like v6.12; found {release!r}")
    try:
        outcome = report_actions.change(seen, act, permit_of(request.user), release)
    except InvalidInput as unfit:
        return refused(f"{verb.label}: {unfit}")
    if act.notify_thread and outcome.changed:
        enqueue("take_results")
    return _answer(request, outcome.words(), list(seen), act.batch if outcome.changed else "")


def _act(request: HttpRequest, verb: ActionKey) -> report_actions.ReportAction:
    argument = told(request.POST, "argument") if verb.needs or verb.offers else ""
    notify_thread = request.POST.get("notify_thread") == "on"
    return report_actions.ReportAction(
        verb.kind, person(request), secrets.token_hex(6), timezone.now(), argument, notify_thread
    )


@require_POST
@signed_in
def undo(request: HttpRequest) -> HttpResponse:
    """Undo an action on every report where it still counts."""
    try:
        changed = report_actions.undo(
            request.POST.get("batch", ""), person(request), timezone.now(), permit_of(request.user)
        )
    except InvalidInput as unfit:
        return refused(f"batch: {unfit}")
    words = f"{len(changed)} undone." if changed else "Nothing left to undo."
    return _answer(request, words, changed)


def _answer(request: HttpRequest, words: str, keys: list[int], batch: str = "") -> HttpResponse:
    """Report the outcome: for htmx as a fragment with the updated rows, else as a message after a redirect.

    `batch`: the key of the action, if it can be undone.
    """
    if not request.headers.get("HX-Request"):
        messages.info(request, words, extra_tags=batch)
        return back(request)
    rows = queries.chosen(keys, timezone.now())
    return render(request, "triage/changed.html", {"words": words, "batch": batch, "rows": rows, "may_change": True})
