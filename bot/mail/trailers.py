"""Trailers: `Closes:`, `Link:`, `Fixes:` and others (Documentation/process/submitting-patches.rst)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_KEYS = """
Acked-by Bisected-by Bug Cc Closes Co-developed-by Fixes Link Message-ID
Reported-by Reported-and-bisected-by Reported-and-tested-by
Reviewed-by Signed-off-by Suggested-by Tested-by
"""
KNOWN = {name.lower(): name for name in _KEYS.split()}
_TRAILER = re.compile(r"([A-Za-z][A-Za-z-]{1,30})[ \t]{0,3}[:：][ \t]*(.*)")
_FIXES = re.compile(r"(?:commit )?([0-9a-f]{7,40})\b", re.I)
MAX_TRAILERS = 500


@dataclass(frozen=True, slots=True)
class Trailer:
    """A known key in its usual spelling, and the value with wrapped lines joined."""

    key: str
    value: str


def find_trailers(lines: Sequence[str]) -> tuple[Trailer, ...]:
    """Return the trailers in unquoted lines, up to a patch's `---` or its first diff line."""
    found: list[Trailer] = []
    for number, line in enumerate(lines):
        if (line.rstrip() in ("---", "--") and not _heads_a_patch(lines, number)) or line.startswith("diff --git "):
            break  # notes, a signature or the patch itself
        match = _TRAILER.match(line)
        key = KNOWN.get(match[1].lower()) if match else None
        if match and key and (value := _joined(match[2], lines[number + 1 : number + 4])):
            found.append(Trailer(key, value))
        if len(found) >= MAX_TRAILERS:
            break
    return tuple(found)


def _heads_a_patch(lines: Sequence[str], number: int) -> bool:
    """Whether a row of dashes stands above the head of a patch, rather than below its commit message."""
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return below.startswith(("From ", "From:", "Subject:"))


# A link that a mail program wrapped before the id; an address or a title on its own line.
_CUT = re.compile(r"https?://\S{1,200}/\Z")
_WRAPPED = re.compile(r"\s+(?:<?[^\s@]{1,100}@|\(\")")


def _is_trailer(line: str) -> bool:
    found = _TRAILER.match(line)
    return found is not None and found[1].lower() in KNOWN


def _joined(value: str, below: Sequence[str]) -> str:
    """Return the value joined with its continuation lines, wrapped in a parenthesis or right after the colon."""
    value = value.rstrip()
    for line in below:
        open_end = value.count('("') > value.count('")') or bool(_CUT.search(value))
        wrapped = open_end or (line[:1] in " \t" and (not value or _WRAPPED.match(line)))
        if not line.strip() or not wrapped or _is_trailer(line):
            break
        value = f"{value}{'' if _CUT.search(value) else ' '}{line.strip()}".strip()
    return value


def fixed_commits(trailers: Sequence[Trailer]) -> tuple[str, ...]:
    """Return the shas in `Fixes:` trailers, in the length given there, in lower case."""
    matches = (_FIXES.match(each.value) for each in trailers if each.key == "Fixes")
    return tuple(match[1].lower() for match in matches if match)
