"""Prefilter: whether the raw bytes of a mail can be a robot's report, asked before any mail is parsed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NOTICED = re.compile(rb"noticed\s+an?\s")
# In these, the sentence may be split by soft line breaks or not appear in the bytes at all.
_ENCODINGS = (b"quoted-printable", b"base64", b"utf-16", b"utf-32", b"delsp", b"text/html")


class Recogniser:
    """Built once for the robots' addresses. It never rejects a report; what passes is parsed by `find_report`."""

    def __init__(self, robots: Iterable[str]) -> None:
        self._robots = tuple(robot.lower().encode() for robot in sorted(robots))

    def is_robot(self, sender: bytes) -> bool:
        """Whether a From header names a robot."""
        lower = sender.lower()
        return any(robot in lower for robot in self._robots)

    def may_be_report(self, sender: bytes, raw: bytes) -> bool:
        """Whether the mail must be parsed. `sender`: its From header; `raw`: the whole mail."""
        if not self.is_robot(sender):
            return False
        # Fixed strings first: ten times faster than patterns.
        first = raw.find(b"noticed")
        if first >= 0 and _NOTICED.search(raw, first):
            return True
        lower = raw.lower()
        return any(name in lower for name in _ENCODINGS)
