"""The subsystem that a commit's title names: "mm/vmscan" of "mm/vmscan: stop rescanning". Pure."""

from __future__ import annotations

import re

from bot.mail.patches import bare_title

_REVERT = re.compile(r'(?:Revert|Reapply)\s+"(.*?)"?\Z')
_PREFIX = re.compile(r"([A-Za-z0-9][\w./,+&*-]{0,60}(?: [\w./-]{1,20})?):\s")


def subsystem_of(title: str) -> str:
    """Return the first prefix of a title, or of the title that a revert quotes; "" if there is none."""
    title = bare_title(title)
    while found := _REVERT.match(title):
        title = found[1]
    prefix = _PREFIX.match(title)
    return prefix[1] if prefix else ""
