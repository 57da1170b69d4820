"""`POST /api/v1/evidence?report=SHA&side=culprit&name=perf.txt`: attach a file; its text is the request body."""

from __future__ import annotations

from django.http import Http404, HttpRequest, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from tracker.api.keys import authenticate, error_response
from tracker.domain.errors import InvalidInput
from tracker.pages.tool_output.target import attach, find
from tracker.services import tool_output
from tracker.services.accounts.api_keys import Scope


@csrf_exempt  # authenticated by a key, without cookies
@require_POST
def take_evidence(request: HttpRequest) -> JsonResponse:
    """Return 202 with the page of the file, whether it is new or known. `kernel=v6.12` can replace `report` and
    `side`, with or without `machine`. 400: invalid; 404: no such report, kernel or machine; 413: too large.
    """
    key = authenticate(request, Scope.EVIDENCE)
    if isinstance(key, JsonResponse):
        return key
    body = request.read(4 * tool_output.MOST + 1)
    if len(body) > 4 * tool_output.MOST:  # at most four bytes per character
        return error_response(413, f"expected at most {tool_output.MOST:,} letters")
    params = {name: request.GET.get(name, "") for name in ("report", "side", "kernel", "machine")}
    name = request.GET.get("name", "")
    try:
        target = find(**params)
        row = attach(target, name, body.decode("utf-8", "replace"), key.name, timezone.now())
    except Http404 as missing:
        return error_response(404, str(missing))
    except InvalidInput as error:
        return error_response(400, str(error))
    return JsonResponse({"location": reverse("evidence", args=[row.pk]), "kind": row.kind}, status=202)
