"""`/api/v1/jobs/…` for the lab's runners: they claim jobs, extend leases, hand in results. Scope: jobs.

A runner claims a job for some time and gets all that it needs with it: the patch, the commit to apply it to, the
test, and the token of its lease. Every later request names that token; 409 says that the lease is lost, or that the
job was withdrawn, so that its work is of no use. A result that is sent again does no harm. What was asked by somebody
for whom nothing proves who they are is given only to runners that want it.

`/lab/patch/…` shows the patch of such a mail to everybody, exactly as it was posted, as text for `git apply`. Nothing
of it runs here.
"""

from datetime import timedelta
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from bot import lab
from bot.lab import headline, record_result
from bot.mail.message import parse
from bot.requested_patches import digest_of, patch_of, series_of, text_of
from bot.results.values import RejectedInput
from tracker.api.requests import authenticate, error_response, json_object
from tracker.api.shapes import job_json
from tracker.domain.lab_jobs import UNFINISHED, JobState
from tracker.models import ApiKey, LabJob, Message
from tracker.services import lab_jobs
from tracker.services.accounts import SEND, Scope

# --- Jobs ---

MAX_BYTES = 2 * 1024 * 1024
LEAST, USUAL, MOST = 60, 3600, 7 * 86400  # seconds of a lease
MOST_MACHINES = 200


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def claim(request: HttpRequest) -> HttpResponse:
    """Return 200 and the job that was claimed, with its patch and the token of the lease; 204: no job may be taken.

    Body, all optional: `runner` (a name), `seconds` of the lease, `machines` that the runner has, `unproven` to take
    also what was asked by somebody for whom nothing proves who they are.
    """
    body = _body(request)
    if isinstance(body, HttpResponse):
        return body
    machines, unproven = body.get("machines", []), body.get("unproven", False)
    if not isinstance(machines, list) or not all(isinstance(machine, str) for machine in machines[:MOST_MACHINES]):
        return error_response(400, "machines: expected a list of names")
    if not isinstance(unproven, bool):
        return error_response(400, "unproven: expected true or false")
    lease, runner, now = _lease(body), body.get("runner", "runner"), timezone.now()
    if isinstance(lease, HttpResponse):
        return lease
    if not isinstance(runner, str) or not 0 < len(runner) <= 100:
        return error_response(400, "runner: expected a name of 1 to 100 characters")
    rows = lab_jobs.claimable(now, machines[:MOST_MACHINES], unproven=unproven)
    while job := lab_jobs.claim(rows, runner, now, lease):
        text = text_of(job.patch_parts)
        if digest_of(text) == job.patch_digest or not job.proven:
            return JsonResponse(_with_patch(job, text, request))
        lab_jobs.distrust(job)  # somebody looked at another one
    return HttpResponse(status=204)


@csrf_exempt
@require_POST
def extend(request: HttpRequest, pk: int) -> HttpResponse:
    """Return 200 if the lease is extended; 409: it is lost, or the job was withdrawn, so the work is of no use."""
    body = _body(request)
    if isinstance(body, HttpResponse):
        return body
    lease = _lease(body)
    if isinstance(lease, HttpResponse):
        return lease
    now = timezone.now()
    if not lab_jobs.extend(pk, str(body.get("lease", "")), now, lease):
        return error_response(409, _lost(pk))
    return JsonResponse({"id": pk, "lease_until": now + lease})


@csrf_exempt
@require_POST
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Return 200 if a job is given back, for another runner; 409: the lease is lost."""
    body = _body(request)
    if isinstance(body, HttpResponse):
        return body
    if not lab_jobs.release(pk, str(body.get("lease", ""))):
        return error_response(409, _lost(pk))
    return JsonResponse({"id": pk, "status": "released"})


@csrf_exempt
@require_POST
def take_result(request: HttpRequest, pk: int) -> HttpResponse:
    """Return 200 if a result is recorded, or was before; 400: rejected, with the faults; 409: the lease is lost."""
    body = _body(request)
    if isinstance(body, HttpResponse):
        return body
    job = LabJob.objects.select_related("report__culprit").filter(pk=pk).first()
    if job is None:
        return error_response(404, f"there is no job {pk}")
    payload = orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()
    if job.state == JobState.DONE and job.payload == payload:
        return JsonResponse({"id": pk, "status": "duplicate"})
    try:
        if not record_result(job, lab.parse(body), payload, timezone.now()):
            return error_response(409, _lost(pk))
    except RejectedInput as error:
        faults = [{"pointer": pointer, "why": why} for pointer, why in error.faults]
        return JsonResponse({"error": str(error), "faults": faults}, status=400)
    return JsonResponse({"id": pk, "status": "recorded", "report": reverse("report", args=[job.report.culprit.sha])})


def _body(request: HttpRequest) -> dict[str, Any] | HttpResponse:
    """Return the body of a runner that may do this, or the error."""
    key = authenticate(request, Scope.JOBS)
    return key if isinstance(key, JsonResponse) else json_object(request, MAX_BYTES)


def _lease(body: dict[str, Any]) -> timedelta | HttpResponse:
    seconds = body.get("seconds", USUAL)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not LEAST <= seconds <= MOST:
        return error_response(400, f"seconds: expected a whole number from {LEAST} to {MOST}")
    return timedelta(seconds=seconds)


def _lost(pk: int) -> str:
    job = LabJob.objects.filter(pk=pk).first()
    if job is None:
        return f"there is no job {pk}"
    if job.state in UNFINISHED:
        return "the lease is lost: it has run out, or the job was offered to another runner"
    return f"the job is {job.state}: nobody waits for it any more"


def _with_patch(job: LabJob, patch: str, request: HttpRequest) -> dict[str, Any]:
    """Return a claimed job with all that a runner needs: patch, base, test, machine and the token."""
    head = headline(job)
    return {
        **job_json(job, request.build_absolute_uri),
        "lease": job.lease_token,
        "patch": patch,
        "test": {"suite": head.scenario.suite, "parameters": head.scenario.params},
        "metric": {"name": head.metric.name, "unit": head.metric.unit, "direction": head.metric.direction},
        "runs": max(head.old_runs or 0, head.new_runs or 0, 3),
        "result_url": request.build_absolute_uri(reverse("take-job-result", args=[job.pk])),
    }


# --- The patch of a mail ---


@require_safe
def requested_patch(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the patch of a mail exactly as it was posted, or the whole series that it is a part of, as a runner gets
    it; the part alone while others are not here. 404 if it has none.

    That of a mail that only we got is for operators, and for runners with their key.
    """
    message = get_object_or_404(Message.objects.select_related("source").defer("tables", "own_text"), pk=pk)
    if not (message.public or request.user.has_perm(SEND)):
        key = authenticate(request, Scope.JOBS)
        if not isinstance(key, ApiKey):
            return key
    mail = parse(message.source.raw)
    series = series_of(mail)
    hidden = series and message.public and Message.objects.filter(message_id__in=series.parts, public=False).exists()
    patch = series.text if series and series.text and not hidden else patch_of(mail).text
    text = patch or "there is no patch in this mail: it may link to one, or name a branch\n"
    return HttpResponse(text, content_type="text/plain; charset=utf-8", status=200 if patch else 404)
