"""What is known of who wrote a mail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AuthVerdict(StrEnum):
    """Proven; contradicted; or neither, as most old mail is."""

    PASS = "pass"
    FAIL = "fail"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict, and what it rests on: "dkim gmail.com"."""

    verdict: AuthVerdict = AuthVerdict.NONE
    by: str = ""

    @property
    def proven(self) -> bool:
        return self.verdict is AuthVerdict.PASS


UNPROVEN = Trust()
