"""Which unquoted lines are the writer's own words: not those of a diff, of a forwarded mail or of a code block.

Commands are obeyed in these only: a patch to this file, or a mail that is passed on, may hold any line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
# As `git mailinfo --scissors` knows it: what is below is a patch, up to a second line of this kind.
_SCISSORS = re.compile(r"[-\s]*(?:-\s*(?:8<|>8|cut here)|(?:8<|>8)\s*-)[-\s8<>]*(?:cut here)?[-\s8<>]*\Z", re.I)
_WIDEST = 200  # letters of a line of scissors
_DIFF = re.compile(r"diff -|Index: \S")
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,6}))? \+\d+(?:,(\d{1,6}))? @@")
_DIFF_HEADER = re.compile(
    r"diff |index |Index: |={20,}|(?:new|deleted|old) (?:file )?mode |similarity |dissimilarity |rename |copy |Binary "
    r"|--- |\+\+\+ |\\ "
)
_HEAD = re.compile(r"[\s*]{0,4}(from|to|cc|subject|date|sent|reply-to|message-id|in-reply-to)\s?\*?:\s", re.I)
_HEAD_LINES = 3  # that make a forwarded mail, if From and Subject are among them


def without_foreign_lines(own_text: str) -> str:
    """Return the text with all lines that are not the writer's own words emptied, so that line numbers stay."""
    lines = own_text.split("\n")
    end = _forwarded_at(lines)
    kept = _outside_blocks(lines[:end])
    return "\n".join([*kept, *([""] * (len(lines) - end))])


def _outside_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield each line, empty within code blocks and between scissors, and in diffs."""
    closing = ""  # the fence or the scissors that end the block
    diff = _Diff()
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        mark = fence[1] if fence else "8<" if len(line) <= _WIDEST and _SCISSORS.match(line) else ""
        if closing:
            closing = "" if mark == closing else closing
            yield ""
        elif mark:
            closing = mark
            yield ""
        else:
            following = lines[number + 1] if number + 1 < len(lines) else ""
            yield "" if diff.holds(line, following) else line


class _Diff:
    """Where a diff begins and ends: a hunk says how many lines it has."""

    def __init__(self) -> None:
        self.inside = False
        self.old = self.new = 0  # lines that the hunk still has

    def holds(self, line: str, following: str) -> bool:
        """Whether the next line belongs to a diff."""
        if self.inside and (self.old > 0 or self.new > 0):
            self.old -= line[:1] not in ("+", "\\")
            self.new -= line[:1] not in ("-", "\\")
            return True
        if hunk := _HUNK.match(line):
            self.inside = True
            self.old, self.new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif self.inside:
            self.inside = bool(_DIFF_HEADER.match(line))
        else:
            self.inside = bool(_DIFF.match(line)) or (line.startswith("--- ") and following.startswith("+++ "))
        return self.inside


def _forwarded_at(lines: Sequence[str]) -> int:
    """Return the line at which the header of a forwarded mail begins; the number of lines if there is none."""
    start, names = 0, set[str]()
    for number, line in enumerate(lines):
        found = _HEAD.match(line[:40])
        if not found:
            start, names = number + 1, set()
            continue
        names.add(found[1].lower())
        if len(names) >= _HEAD_LINES and {"from", "subject"} <= names:
            return start
    return len(lines)
