"""Kernel versions in the order of their making: v6.9 < v6.10-rc1 < v6.10 < v6.10.1 < v6.11-rc1."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Documentation/process/2.Process.rst: X.Y is a release, X.Y-rcN its candidates, X.Y.Z its stable updates.
_VERSION = re.compile(r"v(\d{1,3})\.(\d{1,4})(?:-rc(\d{1,3})|\.(\d{1,4}))?\Z")
_NO_CANDIDATE = 999


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A kernel version; compares in the order of release."""

    major: int
    minor: int
    candidate: int  # 999: the release itself, which follows its candidates
    update: int  # 0: not a stable update

    @property
    def cycle(self) -> str:
        """The release that this version leads to or belongs to: "v6.12" of "v6.12-rc3" and of "v6.12.7"."""
        return f"v{self.major}.{self.minor}"

    @property
    def is_release(self) -> bool:
        return self.candidate == _NO_CANDIDATE and self.update == 0

    @property
    def number(self) -> int:
        """One integer in the same order, for a database column."""
        return ((self.major * 10_000 + self.minor) * 1_000 + self.candidate) * 10_000 + self.update


def parse(text: str) -> Version | None:
    """The version that a tag names, or None: "v5.6-rc1", "v5.6", "v5.6.19"; nothing else is a version."""
    found = _VERSION.match(text)
    if not found:
        return None
    major, minor, candidate, update = found.groups()
    return Version(int(major), int(minor), int(candidate) if candidate else _NO_CANDIDATE, int(update or 0))
