"""The result of verifying who wrote a mail, and which of its headers the proof covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

# The headers that decide how the body is read (RFC 2045): as text or as markup, and in which encoding.
BODY_HEADERS = frozenset({"content-type", "content-transfer-encoding", "mime-version"})


class AuthVerdict(StrEnum):
    """Verified; failed; or neither, as for most old mail."""

    PASS = "pass"
    FAIL = "fail"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict, and its basis: "dkim gmail.com".

    `signed`: the names of the headers that the proof covers, in lower case; None: the whole mail, as its own server
    handed it over. `signature` identifies the signature: two mails that have the same one are copies of one mail.
    """

    verdict: AuthVerdict = AuthVerdict.NONE
    by: str = ""
    signed: frozenset[str] | None = None
    signature: str = ""

    @property
    def proven(self) -> bool:
        return self.verdict is AuthVerdict.PASS

    def covers(self, *names: str) -> bool:
        """Whether the writer is proven, and so are these headers, even that one of them is missing."""
        return self.proven and (self.signed is None or self.signed.issuperset(names))

    @property
    def covers_body(self) -> bool:
        """Whether nobody else can have changed how the body is read."""
        return self.covers(*BODY_HEADERS)


UNPROVEN = Trust()


def joined(proofs: Iterable[Trust]) -> Trust:
    """Return what several proofs of one writer cover together, named after the first; UNPROVEN without any."""
    every = [each for each in proofs if each.proven]
    if not every:
        return UNPROVEN
    signed = [each.signed for each in every if each.signed is not None]
    whole = len(signed) < len(every)
    signature = next((each.signature for each in every if each.signature), "")
    return replace(every[0], signed=None if whole else frozenset().union(*signed), signature=signature)
