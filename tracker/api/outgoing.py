"""`/api/v1/outgoing`: the mails of the outbox, for operators, by a key that acts for one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from tracker.api import shapes
from tracker.api.documented import PROBLEM, takes
from tracker.api.keys import authenticate, error_response, person_of
from tracker.api.paging import page
from tracker.domain.errors import InvalidInput
from tracker.models import ApiKey, OutgoingMail, OutgoingState
from tracker.services.accounts.api_keys import Scope
from tracker.services.accounts.roles import SEND

router = Router()
_REFUSED = {status: {"description": text} for status, text in ((401, "no valid key"), (403, "not an operator"))}
_DOCUMENT = takes("state", "report")
_DOCUMENT["responses"] |= {400: {"description": "Bad Request", **PROBLEM}, **_REFUSED, 429: {"description": "later"}}
_DOCUMENT["security"] = [{"key": []}]


@router.get(
    "",
    response={200: list[shapes.OutgoingShape], 400: shapes.Problem},
    url_name="api-outgoing",
    openapi_extra=_DOCUMENT,
)
def outgoing(request: HttpRequest) -> HttpResponse:
    """Outgoing mails without their bytes: all, or those with `state=held` (sent, failed, …) or of `report=SHA`."""
    key = authenticate(request, Scope.TRIAGE)
    if not isinstance(key, ApiKey):
        return key
    person = person_of(key)
    if person is None or not person.has_perm(SEND):
        return error_response(403, f"the key {key.name!r} acts for nobody who may see outgoing mail")
    rows = OutgoingMail.objects.select_related("report__culprit").defer("raw", "body", "people")
    if sha := request.GET.get("report", ""):
        rows = rows.filter(report__culprit__sha__startswith=sha.lower().replace("\0", ""))
    if state := request.GET.get("state", ""):
        if state not in OutgoingState.values:
            raise InvalidInput(f"state: expected one of {', '.join(OutgoingState.values)}; found {state[:40]!r}")
        rows = rows.filter(state=state)
    response = page(request, rows, _shape, list(shapes.OutgoingShape.model_fields))
    response["Cache-Control"] = "private, no-store"
    return response


def _shape(mail: OutgoingMail) -> dict[str, Any]:
    own = ("message_id", "purpose", "state", "reason", "subject", "recipients", "composed_at", "not_before", "sent_at")
    report = mail.report.culprit.sha if mail.report else ""
    return {"id": mail.pk, "report": report, **{name: getattr(mail, name) for name in own}}
