"""What programs with an API key post: results to `/api/v1/results`, the files of a benchmark to `/api/v1/files`, tool
output to `/api/v1/tool-output`.

A body may hold several results: the valid ones are taken even if others are rejected, and sending it again does no
harm. A file's text is the request body; `?report=SHA&side=culprit&name=perf.txt` says what it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation, TooManyFilesSent
from django.core.files import File as Upload
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from bot.config import tree_paths
from bot.results import intake, recognise
from bot.results.formats.benchmark_files import File
from bot.results.formats.files import text
from bot.results.intake import TEXTS, HandedIn, IntakeAnswer, about_of, take_in
from bot.results.recognise import Input, read_bytes
from bot.results.storage import ReleaseReceipt, Taken
from bot.results.values import Conflict, RejectedInput
from tracker.api.requests import authenticate, error_response
from tracker.domain.events import InvalidInput
from tracker.domain.text import counted
from tracker.models import ApiKey
from tracker.pages.http import permission_required
from tracker.pages.results import place_of
from tracker.services import catalog
from tracker.services.accounts import ANY_PRODUCER, SEND, Scope
from tracker.services.enqueue import enqueue_soon

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
    if isinstance(key, JsonResponse):
        return key
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES or body.count(b"{") + body.count(b"[") > MAX_OBJECTS:
        limits = f"{MAX_BYTES:,} bytes and {MAX_OBJECTS:,} objects"
        return error_response(413, f"expected at most {limits} per body; use `ingest` for larger files")
    inputs = list(islice(read_bytes(body, "body"), MAX_RESULTS + 1))
    if len(inputs) > MAX_RESULTS:
        return error_response(413, f"expected at most {MAX_RESULTS:,} results per body; nothing was taken")
    if not any(entry.result for entry in inputs) and (tool := recognise.tool_of(body)):
        how = "post it to /api/v1/files, with what it doesn't say: curl -F file=@FILE -F kernel=VERSION …"
        return error_response(400, f"expected a result, found what {tool} wrote itself: {how}")
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


# --- What was rejected ---


@require_POST
@permission_required(SEND, "only operators dismiss rejected files")
def dismiss_rejected(request: HttpRequest) -> HttpResponse:
    """Move the rejected files out of sight, which ends the problem on `/operating/`."""
    number = recognise.dismiss_rejected(settings.PERFWORK_DROP)
    messages.info(request, f"{counted(number, 'file')} moved to dismissed/ in the drop directory.")
    return redirect("operating")


# --- Files of a benchmark ---


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def take_files(request: HttpRequest) -> JsonResponse:
    """Take what benchmarks wrote, as a form with files: `parent` and `culprit`, or `file` with `kernel`.

    The other fields are the options of `ingest`: commit, base, title, author, suite, machine, cpus, param (NAME=VALUE,
    any number), tree, branch, producer. Answers as `take_results`; 400 has every fault of every file.
    """
    key = authenticate(request, Scope.RESULTS)
    if isinstance(key, JsonResponse):
        return key
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_BYTES:
        return error_response(413, f"expected at most {MAX_BYTES:,} bytes per form; use `ingest` for larger files")
    if request.content_type != "multipart/form-data":
        return error_response(400, "expected a form with files (multipart/form-data): curl -F culprit=@run1.json …")
    try:
        form, uploads = request.POST, request.FILES
    except (MultiPartParserError, TooManyFilesSent, SuspiciousOperation) as error:
        return error_response(400, f"expected a form with files: {error}")
    fields = {*TEXTS, "cpus", "param", "kernel", "parent", "culprit", "file"}
    unknown = sorted({*form, *uploads} - fields)
    if unknown:
        known = ", ".join(sorted(fields))
        return error_response(400, f"expected of these fields: {known}; found {', '.join(unknown)[:200]}")
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
            return error_response(400, "expected files as `parent` and `culprit`, or as `file` with `kernel`")
    except RejectedInput as rejection:
        handed = HandedIn((Input(rejection.where, None, rejection),))
    return _taken([_of_producer(entry, key.producer) for entry in handed.inputs], now, key, handed.note)


def _uploaded(files: Sequence[Upload[bytes]]) -> list[File]:
    return [File((file.name or "file")[:200], text(file.read(), file.name or "file")) for file in files]


# --- Tool output ---


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def take_tool_output(request: HttpRequest) -> JsonResponse:
    """Return 202 with the page of the file, whether it is new or known. `kernel=v6.12` can replace `report` and
    `side`, with or without `machine`. 400: invalid; 404: no such report, kernel or machine; 413: too large.
    """
    key = authenticate(request, Scope.EVIDENCE)
    if isinstance(key, JsonResponse):
        return key
    body = request.read(4 * catalog.MOST_CHARACTERS + 1)
    if len(body) > 4 * catalog.MOST_CHARACTERS:  # at most four bytes per character
        return error_response(413, f"expected at most {catalog.MOST_CHARACTERS:,} letters")
    params = {name: request.GET.get(name, "") for name in ("report", "side", "kernel", "machine")}
    name = request.GET.get("name", "")
    try:
        place = place_of(**params)
        row = catalog.attach(name, body.decode("utf-8", "replace"), key.name, timezone.now(), **place)
    except Http404 as missing:
        return error_response(404, str(missing))
    except InvalidInput as error:
        return error_response(400, str(error))
    return JsonResponse({"location": reverse("tool-output", args=[row.pk]), "kind": row.kind}, status=202)
