"""What a lab's programs do with their API key: results, files of a benchmark and tool output come in, jobs go out.

A body to `/api/v1/results` may hold several results: the valid ones are taken even if others are rejected, and sending
it again does no harm. `/api/v1/files` takes the files of a benchmark, `/api/v1/tool-output` one file as the request
body; `?report=SHA&side=culprit&name=perf.txt` says what it belongs to.

At `/api/v1/jobs/…` a runner claims a job for some time and gets all that it needs with it: the patch, the commit to
apply it to, the test, and the token of its lease. Every later request names that token; 409 says that the lease is
lost, or that the job was withdrawn, so that its work is of no use. What a mail asks that does not prove its sender is
given only to runners that want it. `/lab/patch/…` shows the patch of such a mail to everybody, exactly as it was
posted, as text for `git apply`. Nothing of it runs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import SuspiciousOperation, TooManyFilesSent
from django.core.files import File as Upload
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from bot.config import tree_paths
from bot.lab import digest_of, headline, parse_job_result, patch_of, record_result, series_of, text_of
from bot.mail.message import parse
from bot.results import intake, recognise
from bot.results.formats.benchmark_files import File
from bot.results.formats.checks import decode_text
from bot.results.intake import TEXTS, HandedIn, IntakeAnswer, about_of, take_in
from bot.results.recognise import Input, read_bytes
from bot.results.storage import ReleaseReceipt, Taken
from bot.results.values import Conflict, RejectedInput
from tracker.api.requests import authenticate, json_object
from tracker.api.shapes import job_json
from tracker.domain.events import InvalidInput
from tracker.domain.lab_jobs import UNFINISHED, JobState
from tracker.models import ApiKey, LabJob, Message
from tracker.pages.http import ApiError
from tracker.pages.lab import place_of
from tracker.services import catalog, lab_jobs
from tracker.services.accounts import ANY_PRODUCER, SEND, Scope
from tracker.services.installation import enqueue_soon

# --- Results ---

# Per body; use `ingest` or the drop directory for larger ones.
MAX_BYTES = 16 * 1024 * 1024
MAX_OBJECTS = 400_000  # JSON objects and arrays: each takes 64 bytes of memory or more, of 2 bytes of body
MAX_RESULTS = 1000
MAX_KEPT = 20  # rejected results that are kept as files
GATHER = 0.5  # seconds in which results come in before their mail is composed


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def take_results(request: HttpRequest) -> JsonResponse:
    """Return 202 if anything is new; 200: all known; 400: rejected, with the faults; 409: known with different
    content.

    From a body with several results, the valid ones are taken even if others are rejected; sending it again does no
    harm. 401: no valid key; 403: the key may not send results; 413: body too large, or too many results in it.
    """
    key = authenticate(request, Scope.RESULTS)
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES or body.count(b"{") + body.count(b"[") > MAX_OBJECTS:
        limits = f"{MAX_BYTES:,} bytes and {MAX_OBJECTS:,} objects"
        raise ApiError(413, f"expected at most {limits} per body; use `ingest` for larger files")
    inputs = list(islice(read_bytes(body, "body"), MAX_RESULTS + 1))
    if len(inputs) > MAX_RESULTS:
        raise ApiError(413, f"expected at most {MAX_RESULTS:,} results per body; nothing was taken")
    if not any(entry.result for entry in inputs) and (tool := recognise.tool_of(body)):
        how = "post it to /api/v1/files, with what it doesn't say: curl -F file=@FILE -F kernel=VERSION …"
        raise ApiError(400, f"expected a result, found what {tool} wrote itself: {how}")
    return _taken([_of_producer(entry, key.producer) for entry in inputs], timezone.now(), key)


def _taken(inputs: Sequence[Input], now: datetime, key: ApiKey, note: str = "") -> JsonResponse:
    """Import the inputs and return the outcomes, one by itself or several as `results`."""
    answers = list(take_in(inputs, tree_paths(), now))
    rejections = [(answer.raw, answer.rejection) for answer in answers if answer.rejection]
    rejected = [(raw, why) for raw, why in rejections if raw and not isinstance(why, Conflict)]
    for raw, why in rejected[:MAX_KEPT]:
        recognise.keep(raw, why, settings.PERFWORK_DROP, now, f"posted with the key {key.name}")
    is_new = any(answer.receipt and answer.receipt.taken is Taken.NEW for answer in answers)
    if is_new:
        enqueue_soon("take_results", GATHER)  # its mail need not wait for the scheduler
    status = 202 if is_new else 200
    if rejections or not answers:
        status = 409 if rejections and all(isinstance(why, Conflict) for _, why in rejections) else 400
    outcomes = [{**_outcome(answer), **({"note": note} if note else {})} for answer in answers]
    response = JsonResponse(outcomes[0] if len(outcomes) == 1 else {"results": outcomes}, status=status)
    if len(outcomes) == 1 and "location" in outcomes[0]:
        response["Location"] = outcomes[0]["location"]
    return response


def _of_producer(entry: Input, producer: str) -> Input:
    """Return an input; refused if it is a result of a producer that the key does not speak for."""
    if entry.result is None or producer in (ANY_PRODUCER, entry.result.producer):
        return entry
    why = f"the key may submit results of {producer!r} only; found {entry.result.producer[:80]!r}"
    return Input(entry.where, None, RejectedInput(entry.where, "not permitted", [("/producer/name", why)]))


def _outcome(answer: IntakeAnswer) -> dict[str, Any]:
    """Return the outcome of one result as JSON."""
    if answer.receipt is None or answer.rejection:
        assert answer.rejection
        return {
            "error": str(answer.rejection),
            "faults": [{"pointer": pointer, "why": why} for pointer, why in answer.rejection.faults],
        }
    if isinstance(answer.receipt, ReleaseReceipt):
        kernel = str(answer.receipt.row.kernel)
        return {
            "status": answer.receipt.taken.value,
            "producer": answer.receipt.row.producer,
            "id": answer.receipt.row.external_id,
            "location": reverse("api-kernel", args=[kernel]),
            "kernel": kernel,
        }
    row, report = answer.receipt.row, answer.receipt.report
    return {
        "status": answer.receipt.taken.value,
        "producer": row.producer,
        "id": row.external_id,
        "location": reverse("api-result", args=[row.pk]),
        "report": reverse("report", args=[report.culprit.sha]) if report else None,
        "held": row.held.splitlines(),
        "note": row.note,
    }


# --- Files of a benchmark ---


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def take_files(request: HttpRequest) -> JsonResponse:
    """Take what benchmarks wrote, as a form with files: `parent` and `culprit`, or `file` with `kernel`.

    The other fields are the options of `ingest`: commit, base, title, author, suite, machine, cpus, param (NAME=VALUE,
    any number), tree, branch, producer. Answers as `take_results`; 400 has every fault of every file.
    """
    key = authenticate(request, Scope.RESULTS)
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_BYTES:
        raise ApiError(413, f"expected at most {MAX_BYTES:,} bytes per form; use `ingest` for larger files")
    if request.content_type != "multipart/form-data":
        raise ApiError(400, "expected a form with files (multipart/form-data): curl -F culprit=@run1.json …")
    try:
        form, uploads = request.POST, request.FILES
    except (MultiPartParserError, TooManyFilesSent, SuspiciousOperation) as error:
        raise ApiError(400, f"expected a form with files: {error}") from None
    fields = {*TEXTS, "cpus", "param", "kernel", "parent", "culprit", "file"}
    unknown = sorted({*form, *uploads} - fields)
    if unknown:
        known = ", ".join(sorted(fields))
        raise ApiError(400, f"expected of these fields: {known}; found {', '.join(unknown)[:200]}")
    producer = form.get("producer", "") or ("" if key.producer == ANY_PRODUCER else key.producer)
    texts = {name: form.get(name, "") for name in form if name != "param"} | {"producer": producer}
    now = timezone.now()
    try:
        about = about_of(texts, form.getlist("param"))
        parent, culprit, alone = (_uploaded(uploads.getlist(name)) for name in ("parent", "culprit", "file"))
        if alone and not (parent or culprit):
            handed = intake.of_kernel(form.get("kernel", ""), about, alone, now)
        elif parent and culprit and not alone:
            handed = intake.of_culprit(about, parent, culprit, tree_paths(), now)
        else:
            raise ApiError(400, "expected files as `parent` and `culprit`, or as `file` with `kernel`")
    except RejectedInput as rejection:
        handed = HandedIn((Input(rejection.where, None, rejection),))
    return _taken([_of_producer(entry, key.producer) for entry in handed.inputs], now, key, handed.note)


def _uploaded(files: Sequence[Upload[bytes]]) -> list[File]:
    return [File((file.name or "file")[:200], decode_text(file.read(), file.name or "file")) for file in files]


# --- Tool output ---


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def take_tool_output(request: HttpRequest) -> JsonResponse:
    """Return 202 with the page of the file, whether it is new or known. `kernel=v6.12` can replace `report` and
    `side`, with or without `machine`. 400: invalid; 404: no such report, kernel or machine; 413: too large.
    """
    key = authenticate(request, Scope.EVIDENCE)
    body = request.read(4 * catalog.MOST_CHARACTERS + 1)
    if len(body) > 4 * catalog.MOST_CHARACTERS:  # at most four bytes per character
        raise ApiError(413, f"expected at most {catalog.MOST_CHARACTERS:,} characters")
    params = {name: request.GET.get(name, "") for name in ("report", "side", "kernel", "machine")}
    name = request.GET.get("name", "")
    try:
        place = place_of(**params)
        row = catalog.attach(name, body.decode("utf-8", "replace"), key.name, timezone.now(), **place)
    except Http404 as missing:
        raise ApiError(404, str(missing)) from None
    except InvalidInput as error:
        raise ApiError(400, str(error)) from None
    return JsonResponse({"location": reverse("tool-output", args=[row.pk]), "kind": row.kind}, status=202)


# --- Jobs ---

MAX_JOB_BYTES = 2 * 1024 * 1024
MIN_LEASE, DEFAULT_LEASE, MAX_LEASE = 60, 3600, 7 * 86400  # seconds
MOST_MACHINES = 200


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def claim(request: HttpRequest) -> HttpResponse:
    """Return 200 and the job that was claimed, with its patch and the token of the lease; 204: no job may be taken.

    Body, all optional: `runner` (a name), `seconds` of the lease, `machines` that the runner has, `unproven` to take
    also what was asked in a mail that does not prove its sender.
    """
    body = _body(request)
    machines, unproven = body.get("machines", []), body.get("unproven", False)
    if not isinstance(machines, list) or not all(isinstance(machine, str) for machine in machines[:MOST_MACHINES]):
        raise ApiError(400, "machines: expected a list of names")
    if not isinstance(unproven, bool):
        raise ApiError(400, "unproven: expected true or false")
    lease, runner, now = _lease(body), body.get("runner", "runner"), timezone.now()
    if not isinstance(runner, str) or not 0 < len(runner) <= 100:
        raise ApiError(400, "runner: expected a name of 1 to 100 characters")
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
    lease, now = _lease(body), timezone.now()
    if not lab_jobs.extend(pk, str(body.get("lease", "")), now, lease):
        raise ApiError(409, _lost(pk))
    return JsonResponse({"id": pk, "lease_until": now + lease})


@csrf_exempt
@require_POST
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Return 200 if a job is given back, for another runner; 409: the lease is lost."""
    body = _body(request)
    if not lab_jobs.release(pk, str(body.get("lease", ""))):
        raise ApiError(409, _lost(pk))
    return JsonResponse({"id": pk, "status": "released"})


@csrf_exempt
@require_POST
def take_result(request: HttpRequest, pk: int) -> HttpResponse:
    """Return 200 if a result is recorded, or was before; 400: rejected, with the faults; 409: the lease is lost."""
    body = _body(request)
    job = LabJob.objects.select_related("report__culprit").filter(pk=pk).first()
    if job is None:
        raise ApiError(404, f"there is no job {pk}")
    payload = orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()
    if job.state == JobState.DONE and job.payload == payload:
        return JsonResponse({"id": pk, "status": "duplicate"})
    try:
        if not record_result(job, parse_job_result(body), payload, timezone.now()):
            raise ApiError(409, _lost(pk))
    except RejectedInput as error:
        faults = [{"pointer": pointer, "why": why} for pointer, why in error.faults]
        return JsonResponse({"error": str(error), "faults": faults}, status=400)
    return JsonResponse({"id": pk, "status": "recorded", "report": reverse("report", args=[job.report.culprit.sha])})


def _body(request: HttpRequest) -> dict[str, Any]:
    """Return the body of a runner that may do this."""
    authenticate(request, Scope.JOBS)
    return json_object(request, MAX_JOB_BYTES)


def _lease(body: dict[str, Any]) -> timedelta:
    seconds = body.get("seconds", DEFAULT_LEASE)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not MIN_LEASE <= seconds <= MAX_LEASE:
        raise ApiError(400, f"seconds: expected a whole number from {MIN_LEASE} to {MAX_LEASE}")
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
        authenticate(request, Scope.JOBS)
    mail = parse(message.source.raw)
    series = series_of(mail)
    hidden = series and message.public and Message.objects.filter(message_id__in=series.parts, public=False).exists()
    patch = series.text if series and series.text and not hidden else patch_of(mail).text
    text = patch or "there is no patch in this mail: it may link to one, or name a branch\n"
    return HttpResponse(text, content_type="text/plain; charset=utf-8", status=200 if patch else 404)
