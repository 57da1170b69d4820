"""What a person does through the API, by a key that acts for them; and one kernel or result as JSON.

`POST /api/v1/reports/SHA/actions` does what the keys and buttons of the triage page do, and `POST
/api/v1/suggestions/ID/decision` decides on a suggestion, both with the rights of the person that the key acts for
(scope triage). An action may name the revision that was seen, so that a change made meanwhile is a 409 and no
surprise.

`/api/v1/kernels/v6.12` has the measurements of a kernel, and `/api/v1/results/17` a bisect result with its outcome
and its findings.
"""

import secrets

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from tracker.api.requests import authenticate, json_object, person_of
from tracker.domain.events import InvalidInput
from tracker.models import Measurement, Report, Suggestion
from tracker.pages import lab
from tracker.pages.http import ApiError
from tracker.pages.lab import kernels_named
from tracker.pages.report_json import finding_json
from tracker.services import report_actions
from tracker.services.accounts import DECIDE, Scope, permit_of
from tracker.services.installation import enqueue
from tracker.services.report_actions import BY_NAME

# --- Actions and decisions ---

MAX_BYTES = 64 * 1024


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def act(request: HttpRequest, culprit: str) -> HttpResponse:
    """Apply an action of the triage page to a report, as the person that the key acts for.

    Body: `do`, the name of the action; `argument`; `revision`, the one that was seen (without it, the current one);
    `notify_thread`. 200: done; 409: changed meanwhile, or no effect; 403: the person may not.
    """
    person, body = person_of(authenticate(request, Scope.TRIAGE)), json_object(request, MAX_BYTES)
    report = Report.objects.select_related("culprit").filter(culprit__sha=culprit.lower()).first()
    if report is None:
        raise ApiError(404, f"no report has the culprit {culprit[:64]!r}; expected all 40 digits")
    name, argument, revision = body.get("do", ""), body.get("argument", ""), body.get("revision", report.revision)
    action = BY_NAME.get(name) if isinstance(name, str) else None
    if action is None:
        raise ApiError(400, f"do: expected one of {', '.join(BY_NAME)}")
    if not isinstance(argument, str) or not isinstance(revision, int) or isinstance(revision, bool):
        raise ApiError(400, "argument: expected a text; revision: expected a number")
    notify = body.get("notify_thread", False) is True
    done = report_actions.ReportAction(
        action.kind,
        person.get_username(),
        secrets.token_hex(6),
        timezone.now(),
        argument,
        notify,
    )
    try:
        outcome = report_actions.change({report.pk: revision}, done, permit_of(person, action.kind))
    except InvalidInput as error:
        raise ApiError(400, f"argument: {error}") from None
    if outcome.forbidden:
        raise ApiError(403, f"{person.get_username()} may not change this report")
    if not outcome.changed:
        raise ApiError(409, outcome.summary())
    if notify:
        enqueue("take_results")
    report.refresh_from_db()
    own = {"culprit": report.culprit.sha, "state": report.state, "status": report.status, "revision": report.revision}
    return JsonResponse({**own, "undo": done.batch})


@csrf_exempt
@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Decide on a suggestion, as the person that the key acts for.

    Body: `decision`: accept, reject, or another kind of event. 200: done; 409: somebody decided before.
    """
    person, body = person_of(authenticate(request, Scope.TRIAGE)), json_object(request, MAX_BYTES)
    if not person.has_perm(DECIDE):
        raise ApiError(403, f"{person.get_username()} may not decide on suggestions")
    suggestion = Suggestion.objects.select_related("report").filter(pk=pk).first()
    if suggestion is None:
        raise ApiError(404, f"there is no suggestion {pk}")
    choice = body.get("decision", "")
    if choice not in report_actions.CHOICES:
        raise ApiError(400, f"decision: expected {', '.join(report_actions.CHOICES)}")
    decision, instead = report_actions.decision_of(choice, suggestion)
    if not report_actions.decide(suggestion, decision, person.get_username(), timezone.now(), instead):
        raise ApiError(409, "somebody has decided on this suggestion already")
    suggestion.refresh_from_db()
    suggestion.report.refresh_from_db()
    return JsonResponse({"id": pk, "decision": suggestion.decision, "status": suggestion.report.status})


# --- A kernel's measurements ---

MOST = 20_000  # measurements per response


def kernel(request: HttpRequest, handle: str) -> JsonResponse:
    """Return the measurements of a kernel ("v6.12", "v6.12/2M"), oldest first; 404 if none was measured."""
    (measured_kernel,) = kernels_named([handle])
    if measured_kernel is None:
        raise ApiError(404, f"no kernel {handle[:100]} was measured")
    related = Measurement.objects.select_related("metric", "scenario", "machine")
    measurements = [
        {
            "metric": measurement.metric.name,
            "unit": measurement.metric.unit,
            "direction": measurement.metric.direction,
            "role": measurement.role,
            "suite": measurement.scenario.suite,
            "params": measurement.scenario.params,
            "machine": measurement.machine.name,
            "mean": measurement.mean,
            "stddev": measurement.stddev,
            "n": measurement.runs,
            "samples": measurement.samples,
        }
        for measurement in related.filter(kernel=measured_kernel).order_by("pk")[:MOST]
    ]
    return JsonResponse(
        {"kernel": measured_kernel.name, "variant": measured_kernel.variant, "measurements": measurements}
    )


# --- A bisect result ---


def result(request: HttpRequest, pk: int) -> JsonResponse:
    """Return a result without its payload, which is large and which the lab already has."""
    try:
        row = lab.result_named(pk)
    except Http404 as missing:
        raise ApiError(404, str(missing)) from None
    return JsonResponse(
        {
            "producer": row.producer,
            "id": row.external_id,
            **{name: getattr(row, name) for name in ("format", "outcome", "created_at", "received_at")},
            "held": row.held.splitlines(),
            "note": row.note,
            "measured": row.measured,
            "report": reverse("report", args=[row.report.culprit.sha]) if row.report else None,
            "findings": [finding_json(finding) for finding in lab.findings_of(row)],
        }
    )
