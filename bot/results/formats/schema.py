"""Our own JSON formats: whether a value fits its schema, with the place of each fault; one text for a value. Pure."""

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

MAX_FAULTS = 100  # told of one result
_LARGE = 1 << 20  # bytes of a result
_FOLDER = Path(__file__).parent / "schemas"


class Schema:
    """One file of schemas/: JSON Schema, draft 2020-12."""

    def __init__(self, name: str) -> None:
        self._file = _FOLDER / f"{name}.schema.json"

    def check(self, value: Any, where: str) -> None:
        """Refused with the JSON pointer of the first fault, and all of them (up to MAX_FAULTS) beside it."""
        if self.is_surely_valid(value):
            return
        try:
            faults = sorted(islice(self.faults(value), MAX_FAULTS))
        except RecursionError:
            raise RejectedInput(where, "nested too deeply") from None
        if faults:
            place, why = faults[0]
            raise RejectedInput(f"{where}, {place}" if place else where, why, faults)

    def is_surely_valid(self, value: Any) -> bool:
        """Whether a validator 200 times as fast says yes; on a no, or where it can't read, jsonschema has the word."""
        try:
            return self._fast.is_valid(value)
        except (ValueError, RecursionError):  # half a character, a number beyond all measure, too deep
            return False

    def faults(self, value: Any) -> Iterator[tuple[str, str]]:
        """Each fault: its JSON pointer, and what is wrong there."""
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
    """The fault in a line that a huge value can't flood."""
    return error.message if len(error.message) <= 200 else f"{error.message[:120]} … {error.message[-60:]}"


def pointer(path: Any) -> str:
    """A JSON pointer (RFC 6901); the whole document is ""."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def canonical(value: Any) -> str:
    """One text for one JSON value, whatever its spacing and the order of its keys; Refused where it is too deep."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # integers past 64 bits, half of a character: always so for the same value
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise RejectedInput("", "nested too deeply") from None
