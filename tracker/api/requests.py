"""What all of the API shares: keys, request bodies, paging, fields, errors, and the rest of OpenAPI.

Programs send an API key as a bearer token (RFC 6750). A key has scopes that say what it may do, a number of requests
a minute, and possibly a person that it acts for.

Lists are paged by the last key of the page before, which the Link header carries (RFC 8288): pages don't shift while
rows come in. A list may say what its pages depend on (`PageVersion`), which is cheaper to compare than the page is to
make; an unchanged page is then answered with 304 and never made.

Ninja documents the lists by their shapes. What it can't see stands here: query parameters, errors as problem+json,
and the addresses that take data. An address that does not exist is answered in JSON below `/api/`, as everything else
there.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import orjson
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.views.defaults import page_not_found
from ninja import Schema

from tracker.domain.events import InvalidInput
from tracker.models import ApiKey
from tracker.pages.http import ApiError, is_key
from tracker.services import accounts
from tracker.services.accounts import Scope

# --- Keys and bodies ---


def authenticate(request: HttpRequest, scope: Scope) -> ApiKey:
    """Return the key of a request that may do this. Raises ApiError: 401 without a valid key, 403 without the scope,
    429 after too many requests in this minute.
    """
    now = timezone.now()
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    key = accounts.find_api_key(token.strip(), now) if scheme.lower() == "bearer" else None
    if key is None:
        expected = "expected a header `Authorization: Bearer KEY` with a valid API key"
        raise ApiError(401, expected, {"WWW-Authenticate": "Bearer"})
    if scope not in key.scopes:
        raise ApiError(403, f"the key {key.name!r} lacks the scope {scope}: it has {', '.join(key.scopes)}")
    if wait := accounts.count_request(key, now):
        made = f"the key {key.name!r} has made {accounts.MOST_A_MINUTE} requests this minute"
        raise ApiError(429, made, {"Retry-After": str(wait)})
    return key


def person_of(key: ApiKey) -> User:
    """Return the person that a key acts for. Raises ApiError if there is none whose account is active."""
    person = key.acts_for
    if not isinstance(person, User) or not person.is_active:
        raise ApiError(403, f"the key {key.name!r} acts for nobody who has an account")
    return person


def json_object(request: HttpRequest, most_bytes: int) -> dict[str, Any]:
    """Return the body of a request, a JSON object; {} if it is empty. Raises ApiError."""
    raw = request.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise ApiError(413, f"expected at most {most_bytes:,} bytes")
    if b"\\u0000" in raw:  # PostgreSQL stores none
        raise ApiError(400, "expected no NUL characters")
    try:
        body = orjson.loads(raw or b"{}")
    except ValueError as error:
        raise ApiError(400, f"invalid JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiError(400, "expected a JSON object")
    return body


# --- Paging ---

LEAST, USUAL, MOST = 1, 100, 1000  # rows per page
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class PageVersion:
    """What a page depends on, which is cheaper to compare than the page is to make.

    `columns`: of the query, "culprit__sha"; `others`: what else the shape depends on.
    """

    columns: tuple[str, ...]
    others: object = None

    def of(self, row: Model) -> tuple[Any, ...]:
        """Return what a query for the columns returns for a row."""
        values = []
        for path in _paths(self.columns):
            value: Any = row
            for name in path:
                value = None if value is None else getattr(value, name)
            values.append(value)
        return tuple(values)


@cache
def _paths(columns: tuple[str, ...]) -> list[list[str]]:
    return [name.split("__") for name in columns]


def page(
    request: HttpRequest,
    rows: QuerySet[Row],
    shape: Callable[[Row], dict[str, Any]],
    schema: type[Schema],
    version: PageVersion | None = None,
) -> HttpResponse:
    """Return a page of rows in the order of their keys as JSON, with a Link header if there is another one.

    Read from the request: `cursor`, `limit` and `fields` (of `schema`). With `version` an unchanged page is not made
    again. Raises InvalidInput.
    """
    cursor, limit = request.GET.get("cursor", ""), request.GET.get("limit", str(USUAL))
    if cursor and not is_key(cursor):
        raise InvalidInput(f"cursor: expected a cursor from a Link header; found {cursor[:40]!r}")
    if not limit.isascii() or not limit.isdecimal() or len(limit) > 4 or not LEAST <= int(limit) <= MOST:
        raise InvalidInput(f"limit: expected a number from {LEAST} to {MOST}; found {limit[:40]!r}")
    fields = [field.strip() for field in request.GET.get("fields", "").split(",") if field.strip()]
    if unknown := [field for field in fields if field not in schema.model_fields]:
        raise InvalidInput(f"fields: expected some of {', '.join(schema.model_fields)}; found {unknown[0][:40]!r}")
    rows = rows.filter(pk__gt=int(cursor)) if cursor else rows
    rows = rows.order_by("pk")[: int(limit) + 1]
    if version and request.headers.get("If-None-Match"):
        etag = _etag_of(request, list(rows.values_list(*version.columns)), version)
        if unchanged := get_conditional_response(request, etag=etag):
            unchanged["Cache-Control"] = "no-cache"
            return unchanged
    records = list(rows)
    etag = _etag_of(request, [version.of(record) for record in records], version) if version else ""
    more, records = len(records) > int(limit), records[: int(limit)]
    shaped = [shape(record) for record in records]
    shaped = [{name: entry[name] for name in fields} for entry in shaped] if fields else shaped
    response = as_json(request, shaped, etag)
    if more:
        following = request.GET.copy()
        following["cursor"] = str(records[-1].pk)
        address = request.build_absolute_uri(f"{request.path}?{following.urlencode()}")
        response["Link"] = f'<{address}>; rel="next"'
    return response


def _etag_of(request: HttpRequest, rows: Sequence[tuple[Any, ...]], version: PageVersion) -> str:
    return _etag(orjson.dumps([request.build_absolute_uri(), version.others, rows]))


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def as_json(request: HttpRequest, value: object, etag: str = "") -> HttpResponse:
    """Return a value as JSON with an ETag, that of its bytes unless given; 304 if the client has it already."""
    body = orjson.dumps(value, option=orjson.OPT_UTC_Z)
    etag = etag or _etag(body)
    response = HttpResponse(body, content_type="application/json", headers={"ETag": etag, "Cache-Control": "no-cache"})
    return get_conditional_response(request, etag=etag, response=response) or response


# --- OpenAPI ---

PROBLEM = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_TEXT = {"type": "string"}
_PARAMETERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "cursor": ("from the Link header", {"type": "string", "pattern": "^[0-9]{1,18}$"}),
    "limit": ("rows per page", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
    "fields": ("the fields to return, separated by commas", _TEXT),
    "report": ("a culprit's sha, or its first digits", _TEXT),
    "release": ("a version like v6.12", _TEXT),
    "updated_since": ("a time or a day", _TEXT),
    "state": ("a state; for reports also open and closed", _TEXT),
    "subsystem": ("a name", _TEXT),
    "author": ("an address", _TEXT),
    "metric": ("a name", _TEXT),
    "machine": ("a name", _TEXT),
    "kernel": ("a name like v6.12", _TEXT),
    "decision": ("open unless given", {"enum": ["open", "accepted", "rejected", "changed", "withdrawn"]}),
}


def takes(*names: str) -> dict[str, Any]:
    """Return the OpenAPI of a list with these query parameters, besides those of every list."""
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
            for name in (*names, "cursor", "limit", "fields")
            for description, schema in (_PARAMETERS[name],)
        ],
        "responses": {400: {"description": "Bad Request", **PROBLEM}},
    }


NOT_FOUND = {"responses": {404: {"description": "Not Found", **PROBLEM}}}


def _writes(
    summary: str, body: Mapping[str, Any], statuses: Mapping[int, str], path: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the OpenAPI of an address that a key may post to."""
    kinds = {"culprit": {"type": "string", "pattern": "^[0-9a-f]{40}$"}, "id": {"type": "integer", "minimum": 1}}
    answer = {"application/json": {"schema": {"type": "object"}}}
    common = {401: "no valid key", 403: "not permitted", 413: "too large", 429: "too many requests"}
    every = {**statuses, 400: "rejected, with the reason", **common}
    return {
        "post": {
            "summary": summary,
            "security": [{"key": []}],
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": kinds[name if name == "culprit" else "id"]}
                for name in path
            ],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": dict(body)}}}},
            "responses": {
                str(status): {"description": text, **({} if status == 204 else {"content": answer})}
                for status, text in every.items()
            },
        }
    }


_LEASE = {"lease": _TEXT}
_LOST = {200: "done", 404: "no such job", 409: "the lease is lost, or nobody waits for it"}
WRITING = {
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "paths": {
        "/api/v1/reports/{culprit}/actions": _writes(
            "Act on a report, for a person (scope triage)",
            {"do": _TEXT, "argument": _TEXT, "revision": {"type": "integer"}, "notify_thread": {"type": "boolean"}},
            {200: "done", 404: "no such report", 409: "changed meanwhile, or no effect"},
            ("culprit",),
        ),
        "/api/v1/suggestions/{id}/decision": _writes(
            "Decide on a suggestion, for a person (scope triage)",
            {"decision": _TEXT},
            {200: "done", 404: "no such suggestion", 409: "decided before"},
            ("id",),
        ),
        "/api/v1/jobs/claim": _writes(
            "Claim a job of the lab (scope jobs)",
            {
                "runner": _TEXT,
                "seconds": {"type": "integer", "minimum": 60, "maximum": 604800},
                "machines": {"type": "array", "items": _TEXT},
                "unproven": {"type": "boolean"},
            },
            {200: "the job, with its patch and the token of its lease", 204: "no job may be taken"},
        ),
        "/api/v1/jobs/{id}/extend": _writes("Extend a lease (scope jobs)", _LEASE, _LOST, ("id",)),
        "/api/v1/jobs/{id}/release": _writes("Give a job back (scope jobs)", _LEASE, _LOST, ("id",)),
        "/api/v1/jobs/{id}/result": _writes(
            "Hand in a result: perf-job-result/1 (scope jobs)", {**_LEASE, "outcome": _TEXT}, _LOST, ("id",)
        ),
        "/api/v1/files": _writes(
            "Submit what benchmarks wrote, as a form with the files `parent` and `culprit`, or `file` (scope results)",
            dict.fromkeys(("commit", "base", "title", "author", "machine", "kernel"), _TEXT),
            {200: "known", 202: "new", 409: "known with different content"},
        ),
        "/api/v1/results": _writes(
            "Submit results in any of their formats (scope results)",
            {},
            {200: "known", 202: "new", 409: "known with different content"},
        ),
    },
}


# --- Unknown addresses ---


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return a 404 as JSON below /api/, as a page elsewhere."""
    if not request.path.startswith("/api/"):
        return page_not_found(request, exception)
    return ApiError(404, f"there is no address {request.path[:200]}; /api/v1/openapi.json has all").response
