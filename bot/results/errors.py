"""Why an input is refused: where it is wrong, what was expected, what was found."""

from __future__ import annotations

from collections.abc import Sequence


class RejectedInput(Exception):
    """One input that is not taken. `where`: a file with a line or a JSON pointer; `why`: one sentence.

    `faults`: every fault as (JSON pointer, why); a place that ends in a pointer tells one.
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
        """The same, said of an input: `where` names it."""
        return self if self.where else type(self)(where, self.why, self.faults)


def _one_line(text: str) -> str:
    """A text from outside on one line of a terminal or a log: nothing that moves a cursor, and not for ever."""
    text = text if len(text) <= 600 else f"{text[:400]} … {text[-150:]}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class Conflict(RejectedInput):
    """A result that was taken before with another content."""
