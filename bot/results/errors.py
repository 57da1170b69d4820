"""Why an input is rejected: where it is wrong, what was expected and what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Parsed = TypeVar("Parsed")


class RejectedInput(Exception):
    """An input was rejected. `where`: a file with a line or a JSON pointer; `why`: one sentence.

    `faults`: every fault as (JSON pointer, why); by default the one fault, if `where` ends in a pointer.
    """

    def __init__(self, where: str, why: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(where, why)
        self.where = _one_line(where)
        self.why = _one_line(why)
        _, comma, pointer = where.rpartition(", /")
        self.faults = tuple(faults) or (((f"/{pointer}", why),) if comma else ())

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why

    def at(self, where: str) -> RejectedInput:
        """Return the same error with `where` set, unless it has one already."""
        return self if self.where else type(self)(where, self.why, self.faults)


def _one_line(text: str) -> str:
    """Return untrusted text as one line of bounded length, with control characters escaped."""
    text = text if len(text) <= 600 else f"{text[:400]} … {text[-150:]}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class Conflict(RejectedInput):
    """A result whose key is known already, with different content."""


def checked_parse(parse: Callable[[], Parsed], where: str) -> Parsed:
    """Return what an adapter makes of an input. Whatever it trips over rejects this input, and none after it."""
    try:
        return parse()
    except (ValueError, ArithmeticError, RecursionError, RuntimeError, TypeError, LookupError) as error:
        raise RejectedInput(where, f"a bug, please report it: {str(error) or type(error).__name__}") from error
