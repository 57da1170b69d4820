"""Kernel versions, in release order: v6.9 < v6.10-rc1 < v6.10 < v6.10.1 < v6.11-rc1."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Documentation/process/2.Process.rst: X.Y is a release, X.Y-rcN its -rcs, X.Y.Z its stable updates. Until 2011,
# releases had three numbers and their updates four: v2.6.39-rc7 < v2.6.39 < v2.6.39.4.
# v5.12-rc1 corrupted file systems, and its tag was renamed to v5.12-rc1-dontuse.
_VERSION = re.compile(r"v(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?(?:-rc(\d{1,3}))?(?:-dontuse)?\Z")
_NO_CANDIDATE = 999


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A kernel version; compares in the order of release."""

    major: int
    minor: int
    update: int  # 0: not a stable update; in 2.6 kernels, the third number of the release
    extra: int  # the update of a 2.6 kernel
    candidate: int  # 999: the release itself, which sorts after its -rcs

    @property
    def cycle(self) -> str:
        """The release that this version leads to or belongs to: "v6.12" for "v6.12-rc3" and "v6.12.7"."""
        old = f".{self.update}" if (self.major, self.minor) == (2, 6) and self.update else ""
        return f"v{self.major}.{self.minor}{old}"

    @property
    def is_release(self) -> bool:
        return not self.is_candidate and not self.is_stable

    @property
    def is_stable(self) -> bool:
        """Whether it is a stable update, made outside the mainline."""
        return (self.extra if (self.major, self.minor) == (2, 6) else self.update) > 0

    @property
    def is_candidate(self) -> bool:
        return self.candidate != _NO_CANDIDATE

    @property
    def number(self) -> int:
        """One integer in the same order, for a database column; not in order for the -rcs of 2.6 kernels."""
        return ((self.major * 10_000 + self.minor) * 1_000 + self.candidate) * 10_000 + self.update


def cycle_of(text: str) -> str:
    """Return the cycle of a tag; "" if the tag is not a version."""
    found = parse(text)
    return found.cycle if found else ""


def parse(text: str) -> Version | None:
    """Return the version that a tag names ("v5.6-rc1", "v5.6", "v5.6.19"), or None for anything else."""
    found = _VERSION.match(text)
    if not found:
        return None
    major, minor, update, extra, candidate = (int(each) if each else None for each in found.groups())
    assert major is not None
    assert minor is not None
    return Version(major, minor, update or 0, extra or 0, _NO_CANDIDATE if candidate is None else candidate)
