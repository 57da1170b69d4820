"""`/v5.6/`: the triage table of a release, and the report actions taken in it.

An action applies to the selected rows, each at the revision that the user saw, and can be undone
(tracker/services/report_actions.py). With htmx the response is a fragment with the updated rows, otherwise a message
after a redirect. An open page asks for the rows that have changed since it was made. An invalid parameter is answered
by a form with all of them, to correct.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NoReturn

from django.contrib import messages
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.domain import versions
from tracker.domain.events import InvalidInput
from tracker.models import Release, ReleaseCandidate, Report, SavedView
from tracker.pages.http import (
    cleaned,
    error_response,
    is_key,
    next_url,
    redirect_back,
    sign_in_required,
    username,
    without_empty,
)
from tracker.pages.triage import table
from tracker.pages.triage.exports import in_form
from tracker.pages.triage.filters import GROUPS, ORDERS, InvalidQuery, TriageQuery, presets
from tracker.pages.triage.table import controls
from tracker.services import report_actions
from tracker.services.accounts import CHANGE_REPORTS, own_reports, permit_of
from tracker.services.installation import enqueue
from tracker.services.report_actions import ACTION_KEYS, BY_NAME, KEYS_OF_OWNERS
from tracker.services.report_summary import clipped

NAMED = 2  # reports whose new state a message says


def triage(request: HttpRequest, version: str) -> HttpResponse:
    """Show both sections as the URL requests (filters.py); 400 names an invalid parameter."""
    now = timezone.now()
    if address := without_empty(request):
        return redirect(address)
    release_version, candidate, _ = version.partition("-rc")
    if candidate:  # its reports are those of the release that it led to
        return redirect(reverse("triage", args=[release_version], query=request.GET or None))
    releases = table.stamped(Release.objects.filter(version=version))
    try:
        query = TriageQuery.from_query(request.GET, now)
    except InvalidQuery as error:
        return invalid_query(request, error) if releases.exists() else _no_release(version)
    user = request.user
    name, email = (username(request), user.email) if user.is_authenticated else ("", "")
    is_author = Exists(Report.objects.filter(author=clipped(email.lower()))) if email else Value(value=False)
    releases = _with_candidate(releases).annotate(is_author=is_author)
    release = releases.annotate(**table.name_annotations(query.active_filters)).first()
    if release is None:
        return _no_release(version)
    if errors := table.unknown_names(query.active_filters, release):
        return invalid_query(request, InvalidQuery("; ".join(errors)))
    counts = table.counts(release)
    own = Q(owner=user.pk or 0)
    visited = last_visit(request, now) if user.is_authenticated else None
    sections = table.sections(version, query, counts, now, visited)
    email = email if release.is_author else ""
    views = SavedView.objects.filter(Q(shared=True) | own)
    context = {
        "release": release,
        "sections": sections,
        "presets": presets(query.text, release, name, email, visited, now),
        "counts": counts,
        "query": query,
        "controls": controls(query, counts.filters),
        "orders": ORDERS,
        "groups": GROUPS,
        # One's own first, which nobody's push out, then shared ones
        "views": views.order_by(Case(When(own, then=0), default=1), "name", "pk")[:80],
        **rights(request, sections),
    }
    return render(request, "triage.html", context)


def _with_candidate(releases: QuerySet[Release]) -> QuerySet[Release]:
    """Annotate releases with the number and the time of their newest -rc."""
    newest = ReleaseCandidate.objects.filter(release=OuterRef("pk")).order_by("-number")
    return releases.annotate(
        candidate=Subquery(newest.values("number")[:1]), candidate_at=Subquery(newest.values("tagged_at")[:1])
    )


def rights(request: HttpRequest, sections: Iterable[table.TriageSection]) -> dict[str, Any]:
    """Return what the rows of these sections need to know of the user: whether there is a column to select in, which
    rows are theirs (None: all), and the actions.
    """
    if request.user.has_perm(CHANGE_REPORTS):
        return {"may_change": True, "own": None, "actions": ACTION_KEYS}
    own = own_reports(request.user, [row.pk for section in sections for row in section.rows])
    return {"may_change": bool(own), "own": own, "actions": KEYS_OF_OWNERS}


_VISIT = timedelta(minutes=30)  # without a page, after which a visit has ended
_KEPT = timedelta(minutes=5)  # the session is written that often at most


def last_visit(request: HttpRequest, now: datetime) -> datetime | None:
    """Return when the user last looked at a table before this visit; None if this is the first."""
    before, last = (datetime.fromisoformat(text) if text else None for text in request.session.get("visits", ("", "")))
    if last is None or now - last > _KEPT:
        before = last if last and now - last > _VISIT else before
        request.session["visits"] = [before.isoformat() if before else "", now.isoformat()]
    return before


def invalid_query(request: HttpRequest, error: InvalidQuery) -> HttpResponse:
    """Show which filter can't be understood, all of them to correct, and the way on."""
    fields = [(name, value) for name, values in request.GET.lists() for value in values][:50]
    context = {"error": str(error), "fields": [(name, value[:300], name in error.names) for name, value in fields]}
    return render(request, "triage_invalid.html", context, status=400)


@require_safe
def triage_as(request: HttpRequest, version: str, form: str) -> HttpResponseBase:
    """The table as JSON, CSV, text, Markdown or Atom, with the page's filters."""
    query = TriageQuery.from_query(request.GET, timezone.now())
    if not Release.objects.filter(version=version).exists():
        return _no_release(version)
    page = reverse("triage", args=[version]) + query.url().rstrip("?")
    return in_form(request, form, version, table.exported(version, query), page)


def _no_release(version: str) -> NoReturn:
    raise Http404(f"there is no release {version}")


@require_POST
@sign_in_required
def change(request: HttpRequest) -> HttpResponse:
    """Apply an action to the selected rows (`row`, each PK:REVISION); redirect back, or return the updated rows."""
    name, rows = request.POST.get("do", ""), request.POST.getlist("row")
    action = BY_NAME.get(name)
    if action is None and not name:
        return _refused(request, "Choose an action.")
    if action is None:
        return error_response(f"do: expected one of {', '.join(BY_NAME)}; found {name[:40]!r}")
    revisions = {}
    for row in rows:
        pk, _, revision = row.partition(":")
        if not (is_key(pk) and is_key(revision)):
            return error_response(f"row: expected KEY:REVISION; found {row[:40]!r}")
        revisions[int(pk)] = int(revision)
    if not 0 < len(revisions) <= report_actions.MOST:
        return error_response(f"row: expected 1 to {report_actions.MOST} rows; found {len(revisions)}")
    argument = cleaned(request.POST, "argument", 10**6)  # one that is too long is refused, not cut
    notify_thread, release = request.POST.get("notify_thread") == "on", cleaned(request.POST, "release", 20)
    report_action = report_actions.ReportAction(
        action.kind, username(request), secrets.token_hex(6), timezone.now(), argument, notify_thread
    )
    if release and versions.parse(release) is None:
        return error_response(f"release: expected a version like v6.12; found {release!r}")
    try:
        outcome = report_actions.change(revisions, report_action, permit_of(request.user, action.kind), release)
    except InvalidInput as error:
        return _refused(request, f"{action.label}: {error}")
    if report_action.notify_thread and outcome.changed:
        enqueue("take_results")
    response = _respond(request, outcome.summary(), list(revisions), report_action.batch, outcome.before)
    if not outcome.changed:
        response["X-Not-Applied"] = "1"  # so that the page gives back what was typed
    return response


def _refused(request: HttpRequest, why: str) -> HttpResponse:
    """Say why nothing was changed: in a line to htmx, else on a page with what was typed, to be corrected."""
    if request.headers.get("HX-Request"):
        return error_response(why)
    context = {
        "why": why,
        "actions": ACTION_KEYS,
        "rows": request.POST.getlist("row")[: report_actions.MOST],
        "back": next_url(request),
        **{name: request.POST.get(name, "") for name in ("do", "argument", "release", "notify_thread")},
    }
    return render(request, "triage_refused.html", context, status=400)


@require_safe
def news(request: HttpRequest) -> HttpResponse:
    """Return the rows of a table that have changed since it was made (`rows`: KEY.REVISION, by commas); 204: none."""
    pairs = [row.partition(".") for row in request.GET.get("rows", "").split(",")]
    if not 0 < len(pairs) <= report_actions.MOST or not all(is_key(pk) and is_key(seen) for pk, _, seen in pairs):
        return error_response(f"rows: expected 1 to {report_actions.MOST} of KEY.REVISION, separated by commas")
    changed = table.changed({int(pk): int(seen) for pk, _, seen in pairs})
    if not changed:
        return HttpResponse(status=204)
    own = None if request.user.has_perm(CHANGE_REPORTS) else own_reports(request.user, changed)
    rows = table.chosen(changed, timezone.now())
    # The table may have a column to select in although none of these rows is the user's.
    may_change = own is None or (request.user.is_authenticated and "act" in request.GET)
    return render(request, "triage_rows.html", {"rows": rows, "may_change": may_change, "own": own})


@require_POST
@sign_in_required
def undo(request: HttpRequest) -> HttpResponse:
    """Undo an action on every report where it still counts."""
    try:
        changed = report_actions.undo(
            request.POST.get("batch", ""),
            username(request),
            timezone.now(),
            permit_of(request.user),
            of_others=request.user.has_perm(CHANGE_REPORTS),
        )
    except InvalidInput as error:
        return error_response(f"batch: {error}")
    text = f"{len(changed)} undone." if changed else "Nothing left to undo."
    return _respond(request, text, changed)


def _respond(
    request: HttpRequest, text: str, keys: list[int], batch: str = "", before: Mapping[int, str] | None = None
) -> HttpResponse:
    """Report the outcome: for htmx as a fragment with the updated rows, and the counts of the table's release, else as
    a message after a redirect.

    `batch`: the key of the action; `before`: the status of each report that it changed, which can be undone.
    """
    before = before or {}
    batch = batch if before else ""
    if not request.headers.get("HX-Request"):
        messages.info(request, text, extra_tags=batch)
        return redirect_back(request)
    rows = table.chosen(keys, timezone.now())
    rows = [replace(row, was=before[row.pk], batch=batch) if row.pk in before else row for row in rows]
    if named := [f"{row.sha10}: {row.status}." for row in rows if row.pk in before][:NAMED]:
        text = " ".join([text, *named])
    own = None if request.user.has_perm(CHANGE_REPORTS) else own_reports(request.user, keys)
    context = {"text": text, "batch": batch, "rows": rows, "may_change": True, "own": own}
    version = cleaned(request.POST, "release", 20)
    if release := _with_candidate(table.stamped(Release.objects.filter(version=version))).first():
        context |= {"release": release, "counts": table.counts(release)}
    return render(request, "triage_changed.html", context)
