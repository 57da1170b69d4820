"""`POST /api/v1/results`: import results over the network, for clients with a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from bot.config import tree_paths
from bot.results import rejected_input
from bot.results.errors import Conflict
from bot.results.intake import IntakeAnswer, take_in
from bot.results.recognise import read_bytes
from bot.results.storage.bisect_results import Taken
from bot.results.storage.kernel_results import ReleaseReceipt
from bot.web.tokens import authentication_error, error_response

MAX_BYTES = 16 * 1024 * 1024  # per body; use `ingest` or the drop directory for larger ones


@csrf_exempt  # authenticated by token, without cookies
@require_POST
def take_results(request: HttpRequest) -> JsonResponse:
    """Return 202 if anything is new; 200: all known; 400: rejected, with the faults; 409: known with different
    content.

    From a body with several results, the valid ones are taken even if others are rejected; sending it again does no
    harm. 401: token missing or wrong; 403: this installation has no tokens; 413: body too large.
    """
    if denied := authentication_error(request):
        return denied
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        return error_response(413, f"expected at most {MAX_BYTES:,} bytes; use `ingest` for larger files")
    now = timezone.now()
    answers = list(take_in(read_bytes(body, "body"), tree_paths(), now))
    for answer in answers:
        if answer.rejection and answer.raw and not isinstance(answer.rejection, Conflict):
            rejected_input.keep(answer.raw, answer.rejection, settings.PERFWORK_DROP, now)
    outcomes = [_outcome(answer) for answer in answers]
    response = JsonResponse(outcomes[0] if len(outcomes) == 1 else {"results": outcomes}, status=_status(answers))
    if len(outcomes) == 1 and "location" in outcomes[0]:
        response["Location"] = outcomes[0]["location"]
    return response


def _status(answers: Sequence[IntakeAnswer]) -> int:
    rejections = [answer.rejection for answer in answers if answer.rejection]
    if rejections or not answers:
        return 409 if rejections and all(isinstance(each, Conflict) for each in rejections) else 400
    return 202 if any(answer.receipt and answer.receipt.taken is Taken.NEW for answer in answers) else 200


def _outcome(answer: IntakeAnswer) -> dict[str, Any]:
    """Return the outcome of one result as JSON."""
    if answer.receipt is None or answer.rejection:
        assert answer.rejection
        return {
            "error": str(answer.rejection),
            "faults": [{"pointer": pointer, "why": why} for pointer, why in answer.rejection.faults],
        }
    if isinstance(answer.receipt, ReleaseReceipt):
        return _release_outcome(answer.receipt)
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


def _release_outcome(receipt: ReleaseReceipt) -> dict[str, Any]:
    row = receipt.row
    return {
        "status": receipt.taken.value,
        "producer": row.producer,
        "id": row.external_id,
        "location": reverse("api-kernel", args=[str(row.kernel)]),
        "kernel": str(row.kernel),
    }
