"""Pages of the API: by the last key of the page before, which the Link header carries (RFC 8288)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, TypeVar

import orjson
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response

from tracker.domain.errors import InvalidInput
from tracker.pages.http import is_key

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
        return tuple(reduce(_attribute, path, row) for path in _paths(self.columns))


@cache
def _paths(columns: tuple[str, ...]) -> list[list[str]]:
    return [name.split("__") for name in columns]


def _attribute(found: Any, name: str) -> Any:
    return None if found is None else getattr(found, name)


def page(
    request: HttpRequest,
    rows: QuerySet[Row],
    shape: Callable[[Row], dict[str, Any]],
    names: Sequence[str],
    version: PageVersion | None = None,
) -> HttpResponse:
    """Return a page of rows in the order of their keys as JSON, with a Link header if there is another one.

    Read from the request: `cursor`, `limit` and `fields` (of `names`). With `version` an unchanged page is not made
    again. Raises InvalidInput.
    """
    cursor, limit = request.GET.get("cursor", ""), request.GET.get("limit", str(USUAL))
    if cursor and not is_key(cursor):
        raise InvalidInput(f"cursor: expected a cursor from a Link header; found {cursor[:40]!r}")
    if not limit.isascii() or not limit.isdecimal() or len(limit) > 4 or not LEAST <= int(limit) <= MOST:
        raise InvalidInput(f"limit: expected a number from {LEAST} to {MOST}; found {limit[:40]!r}")
    fields = _fields(request.GET.get("fields", ""), names)
    rows = rows.filter(pk__gt=int(cursor)) if cursor else rows
    rows = rows.order_by("pk")[: int(limit) + 1]
    if version and request.headers.get("If-None-Match"):
        etag = _etag_of(request, list(rows.values_list(*version.columns)), version)
        if unchanged := get_conditional_response(request, etag=etag):
            unchanged["Cache-Control"] = "no-cache"
            return unchanged
    found = list(rows)
    etag = _etag_of(request, [version.of(each) for each in found], version) if version else ""
    more, found = len(found) > int(limit), found[: int(limit)]
    shaped = [shape(each) for each in found]
    shaped = [{name: each[name] for name in fields} for each in shaped] if fields else shaped
    response = as_json(request, shaped, etag)
    if more:
        following = request.GET.copy()
        following["cursor"] = str(found[-1].pk)
        address = request.build_absolute_uri(f"{request.path}?{following.urlencode()}")
        response["Link"] = f'<{address}>; rel="next"'
    return response


def _etag_of(request: HttpRequest, found: Sequence[tuple[Any, ...]], version: PageVersion) -> str:
    return _etag(orjson.dumps([request.build_absolute_uri(), version.others, found]))


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def as_json(request: HttpRequest, value: object, etag: str = "") -> HttpResponse:
    """Return a value as JSON with an ETag, that of its bytes unless given; 304 if the client has it already."""
    body = orjson.dumps(value, option=orjson.OPT_UTC_Z)
    etag = etag or _etag(body)
    response = HttpResponse(body, content_type="application/json", headers={"ETag": etag, "Cache-Control": "no-cache"})
    return get_conditional_response(request, etag=etag, response=response) or response


def _fields(text: str, names: Sequence[str]) -> list[str]:
    fields = [each.strip() for each in text.split(",") if each.strip()]
    unknown = next((each for each in fields if each not in names), None)
    if unknown is not None:
        raise InvalidInput(f"fields: expected some of {', '.join(names)}; found {unknown[:40]!r}")
    return fields
