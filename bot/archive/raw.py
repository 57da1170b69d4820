"""One mail as an archive holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawMail:
    """The bytes of a mail, and where they stood: a commit, an offset, a file name."""

    raw: bytes
    position: str
