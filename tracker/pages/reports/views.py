"""`/report/<sha>/`: one report; the same as JSON, and its thread as an mbox."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.pages.http import cleaned, error_response, is_key, username
from tracker.pages.reports import exports, queries
from tracker.pages.triage.action_keys import ACTION_KEYS
from tracker.services.accounts.roles import CHANGE_REPORTS, permit_of
from tracker.services.reports import report_actions


def report(request: HttpRequest, ref: str) -> HttpResponse:
    """Show findings, timeline and thread; `?mails=KEY` pages to the part of a long thread before that message."""
    before = request.GET.get("mails", "")
    if before and not is_key(before):
        return error_response(f"mails: expected a number; found {before[:40]!r}")
    found = queries.find_report(ref)
    context = {
        "page": queries.page(found, int(before) if before else None),
        "actions": ACTION_KEYS,
        "may_change": request.user.is_authenticated and permit_of(request.user)(found) is not None,
        "may_take_back": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "reports/report.html", context)


def brief(request: HttpRequest, ref: str) -> HttpResponse:
    """Return the details of an expanded table row, as a fragment."""
    return render(request, "reports/brief.html", {"brief": queries.brief(queries.find_report(ref))})


def tables(request: HttpRequest, ref: str) -> HttpResponse:
    """Show the robot's comparison tables, thousands of rows, on their own page."""
    found = queries.find_report(ref)
    return render(request, "reports/tables.html", {"report": found, "tables": queries.tables(found)})


def as_json(request: HttpRequest, ref: str) -> JsonResponse:
    return JsonResponse(exports.as_json(queries.page(queries.find_report(ref))))


def as_mbox(request: HttpRequest, ref: str) -> HttpResponseBase:
    found = queries.find_report(ref)
    response = StreamingHttpResponse(exports.as_mbox(queries.raw_mails(found)), content_type="application/mbox")
    response["Content-Disposition"] = f'attachment; filename="{found.culprit.sha10}.mbox"'
    return response


def as_packed_mbox(request: HttpRequest, ref: str) -> HttpResponseBase:
    """The mails of a report as mbox.gz, as lore has them."""
    found = queries.find_report(ref)
    content = exports.packed(exports.as_mbox(queries.raw_mails(found)))
    response = StreamingHttpResponse(content, content_type="application/gzip")
    response["Content-Disposition"] = f'attachment; filename="{found.culprit.sha10}.mbox.gz"'
    return response


@require_POST
@login_required
@permission_required(CHANGE_REPORTS, raise_exception=True)
def take_back(request: HttpRequest, ref: str) -> HttpResponse:
    """Reverse one event of the timeline; reversing a reversal makes the original event count again."""
    found, key = queries.find_report(ref), cleaned(request.POST, "key")
    permit = permit_of(request.user)
    done = report_actions.take_back([found.pk], key, username(request), timezone.now(), permit, of_others=True)
    messages.info(request, "Undone." if done else "Nothing to undo: this event no longer counts.")
    return redirect("report", found.culprit.sha)
