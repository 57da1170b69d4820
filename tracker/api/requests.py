"""What OpenAPI says beside the shapes: query parameters, errors as problem+json, and the addresses that take data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    "decision": ("open unless given", {"enum": ["open", "accepted", "rejected", "changed"]}),
}
_OF_EVERY_LIST = ("cursor", "limit", "fields")


def takes(*names: str) -> dict[str, Any]:
    """Return the OpenAPI of a list with these query parameters, besides those of every list."""
    return {
        "parameters": [_parameter(name) for name in (*names, *_OF_EVERY_LIST)],
        "responses": {400: {"description": "Bad Request", **PROBLEM}},
    }


def _parameter(name: str) -> dict[str, Any]:
    description, schema = _PARAMETERS[name]
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


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
                {"name": each, "in": "path", "required": True, "schema": kinds[each if each == "culprit" else "id"]}
                for each in path
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
            {
                "do": _TEXT,
                "argument": _TEXT,
                "revision": {"type": "integer"},
                "notify_thread": {"type": "boolean"},
            },
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
        "/api/v1/results": _writes(
            "Submit results in any of their formats (scope results)",
            {},
            {200: "known", 202: "new", 409: "known with different content"},
        ),
    },
}
