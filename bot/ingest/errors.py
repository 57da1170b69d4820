"""Why an input is refused: where it is wrong, what was expected, what was found."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):
    """One input that is not taken. `where`: a file with a line or a JSON pointer; `why`: one sentence.

    `faults`: every fault as (JSON pointer, why); a place that ends in a pointer tells one.
    """

    def __init__(self, where: str, why: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why
        _, comma, pointer = where.rpartition(", /")
        self.faults = tuple(faults) or (((f"/{pointer}", why),) if comma else ())

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why

    def at(self, where: str) -> Refused:
        """The same, said of an input: `where` names it."""
        return self if self.where else type(self)(where, self.why, self.faults)


class Conflict(Refused):
    """A result that was taken before with another content."""
