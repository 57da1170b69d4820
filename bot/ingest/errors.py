"""Why an input is refused: where it is wrong, what was expected, what was found."""


class Refused(Exception):
    """One input that is not taken. `where`: a file with a line or a JSON pointer; `why`: one sentence."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why
