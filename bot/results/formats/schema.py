"""Validation against our own JSON schemas, with the location of each fault; canonical JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import orjson

from bot.results.errors import RejectedInput

MAX_FAULTS = 100  # reported per result
_LARGE = 1 << 20  # bytes; the slow validator is not used for larger results
_FOLDER = Path(__file__).parent / "schemas"


class Schema:
    """One file of schemas/: JSON Schema, draft 2020-12."""

    def __init__(self, name: str) -> None:
        self._file = _FOLDER / f"{name}.schema.json"

    def check(self, value: Any, where: str) -> None:
        """Raise RejectedInput with the JSON pointer of the first fault, and up to MAX_FAULTS of them in `faults`."""
        if self.is_surely_valid(value):
            return
        try:
            faults = sorted(islice(self.faults(value), MAX_FAULTS))
        except RecursionError:
            raise RejectedInput(where, "nested too deeply") from None
        if faults:
            location, why = faults[0]
            raise RejectedInput(f"{where}, {location}" if location else where, why, faults)

    def is_surely_valid(self, value: Any) -> bool:
        """Whether a validator 200 times as fast accepts the value. If it doesn't or fails, jsonschema decides."""
        try:
            return self._fast.is_valid(value)
        except (ValueError, RecursionError):  # a lone surrogate, a number too large, nesting too deep
            return False

    def faults(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer, message) for each fault."""
        if len(canonical(value)) > _LARGE:  # jsonschema would take a minute for it
            for each in self._fast.iter_errors(value):
                yield pointer(each.instance_path), _sentence(each)
            return
        for error in self._slow.iter_errors(value):
            error = jsonschema.exceptions.best_match([error])
            yield pointer(error.absolute_path), _sentence(error)

    @cached_property
    def _schema(self) -> Any:
        return json.loads(self._file.read_text())

    @cached_property
    def _slow(self) -> jsonschema.Draft202012Validator:
        return jsonschema.Draft202012Validator(self._schema, format_checker=jsonschema.FormatChecker(["email"]))

    @cached_property
    def _fast(self) -> jsonschema_rs.Draft202012Validator:
        return jsonschema_rs.Draft202012Validator(self._schema, validate_formats=True)


def _sentence(error: Any) -> str:
    """Return the message of a fault, shortened if it quotes a large value."""
    return error.message if len(error.message) <= 200 else f"{error.message[:120]} … {error.message[-60:]}"


def pointer(path: Any) -> str:
    """Return a JSON pointer (RFC 6901); "" is the whole document."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def canonical(value: Any) -> str:
    """Return the same text for the same JSON value, whatever its spacing and key order.

    Raise RejectedInput for a value that is nested too deeply.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates: the same value always ends up here
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise RejectedInput("", "nested too deeply") from None
