"""Unified diffs in a text, byte for byte as they were posted, for `git apply`; prose around them is left out.

A hunk says itself how many lines it has (git-diff(1), "Generating patch text"), so nothing is guessed from quote marks,
trailing white space or signatures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_LINES = 200_000
_FILE = re.compile(r"(?:diff --git|Index:) \S")
_OLD_NAME = re.compile(r"--- \S")
_NEW_NAME = re.compile(r"\+\+\+ \S")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,6}))? \+\d{1,9}(?:,(\d{1,6}))? @@")
_HEADER = re.compile(
    r"index [0-9a-f]+\.\.|(?:old|new) mode \d|(?:new|deleted) file mode \d|(?:dis)?similarity index |"
    r"(?:rename|copy) (?:from|to) |={20,}\s*\Z|Binary files "
)
_BINARY = re.compile(r"GIT binary patch\s*\Z|(?:literal|delta) \d+\s*\Z")


def find_diffs(text: str) -> tuple[str, ...]:
    """Return the diffs of a text in order; file after file without anything in between is one diff.

    A hunk that ends too early, as where a mail program wrapped its lines, is returned as it stands: git refuses it.
    """
    lines = text.split("\n")[:MOST_LINES]
    found, at = [], 0
    while at < len(lines):
        end, is_diff = _end_of_diff(lines, at)
        if is_diff:
            found.append("\n".join(lines[at:end]) + "\n")
        at = max(end, at + 1)
    return tuple(found)


def _end_of_diff(lines: Sequence[str], start: int) -> tuple[int, bool]:
    """Return the line after what looks like a diff from here on, and whether it is one, with hunks."""
    at, hunks = start, 0
    while at < len(lines):
        if _starts_file(lines, at):
            at += 1
        elif at == start:
            return start, False
        elif match := _HUNK.match(lines[at]):
            at, hunks = _end_of_hunk(lines, at + 1, int(match[1] or 1), int(match[2] or 1)), hunks + 1
        elif _BINARY.match(lines[at]):
            at, hunks = _end_of_binary(lines, at + 1), hunks + 1
        elif _HEADER.match(lines[at]) or _NEW_NAME.match(lines[at]):
            hunks += lines[at].startswith(("rename to", "new mode", "copy to"))
            at += 1
        else:
            break
    return at, hunks > 0


def _starts_file(lines: Sequence[str], at: int) -> bool:
    if _FILE.match(lines[at]):
        return True
    return bool(_OLD_NAME.match(lines[at])) and at + 1 < len(lines) and bool(_NEW_NAME.match(lines[at + 1]))


def _end_of_hunk(lines: Sequence[str], at: int, old: int, new: int) -> int:
    """Return the line after a hunk with so many old and new lines; white space at the end of lines may be lost."""
    while at < len(lines) and (old > 0 or new > 0):
        mark = lines[at][:1] or " "
        if mark not in " +-\\" or (not lines[at] and at + 1 == len(lines)):
            break
        old -= mark in " -"
        new -= mark in " +"
        at += 1
    while at < len(lines) and lines[at].startswith("\\ "):
        at += 1
    return at


def _end_of_binary(lines: Sequence[str], at: int) -> int:
    """Return the line after a block of base85, and after the empty line that ends it."""
    while at < len(lines) and lines[at].strip():
        at += 1
    return min(at + 1, len(lines))
