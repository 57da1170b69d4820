"""Validation against our own JSON schemas, with the location of each fault; canonical JSON. Pure."""

from __future__ import annotations

import json
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from bot.results.errors import RejectedInput

MAX_FAULTS = 100  # reported per result
_FOLDER = Path(__file__).parent / "schemas"


class Schema:
    """One file of schemas/: JSON Schema, draft 2020-12."""

    def __init__(self, name: str) -> None:
        self._file = _FOLDER / f"{name}.schema.json"

    def check(self, value: Any, where: str) -> None:
        """Raise RejectedInput with the JSON pointer of the first fault, and up to MAX_FAULTS of them in `faults`."""
        try:
            errors = list(islice(self._validator.iter_errors(value), MAX_FAULTS))
        except RecursionError:
            raise RejectedInput(where, "nested too deeply") from None
        except ValueError as error:  # half of a surrogate pair, a number that no database holds
            raise RejectedInput(where, f"holds what JSON should not: {error}") from None
        if errors:
            faults = sorted((pointer(error.instance_path), _sentence(error)) for error in errors)
            location, why = faults[0]
            raise RejectedInput(f"{where}, {location}" if location else where, why, faults)

    @cached_property
    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        schema = json.loads(self._file.read_text())
        # git takes whatever its user calls an address, and dates have a better message of their own
        formats = {"email": lambda text: "@" in text, "date-time": lambda text: True}
        return jsonschema_rs.Draft202012Validator(schema, formats=formats, validate_formats=True)


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
