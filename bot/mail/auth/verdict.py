"""The result of verifying who wrote a mail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AuthVerdict(StrEnum):
    """Verified; failed; or neither, as for most old mail."""

    PASS = "pass"
    FAIL = "fail"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict, and its basis: "dkim gmail.com"."""

    verdict: AuthVerdict = AuthVerdict.NONE
    by: str = ""

    @property
    def proven(self) -> bool:
        return self.verdict is AuthVerdict.PASS


UNPROVEN = Trust()
