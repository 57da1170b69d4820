"""Decode format=flowed (RFC 3676): join soft line breaks, undo space-stuffing, keep quotes."""

from __future__ import annotations

import re

# Lines that are never joined to the line above: a command, a signature, a trailer.
_BEGINS = re.compile(r"#|-- \Z|[A-Z][\w-]{2,30}-by: |(?:Fixes|Closes|Link|Cc): ")
_DIFF = re.compile(r"^(?:diff --git |--- \S|Index: \S|@@ -)")


def unflow(text: str, delsp: bool) -> str:
    """Return the text as its writer typed it. From the first line of a diff on it is left unchanged."""
    lines = text.split("\n")
    out: list[str] = []
    depth, paragraph = 0, list[str]()  # a paragraph whose last line ended in a soft break
    for number, line in enumerate(lines):
        if _DIFF.match(line.removeprefix(" ")):
            return "\n".join([*out, *([_quoted(depth, paragraph)] if paragraph else []), *lines[number:]])
        quotes = len(line) - len(line.lstrip(">"))
        content = line[quotes:].removeprefix(" ")
        if paragraph and (quotes != depth or _BEGINS.match(content)):
            out.append(_quoted(depth, paragraph))
            paragraph = []
        soft = content.endswith(" ") and content != "-- "
        if soft and delsp:
            content = content[:-1]
        depth = quotes
        paragraph.append(content)
        if not soft:
            out.append(_quoted(depth, paragraph))
            paragraph = []
    if paragraph:
        out.append(_quoted(depth, paragraph))
    return "\n".join(out)


def _quoted(depth: int, pieces: list[str]) -> str:
    content = "".join(pieces)
    return f"{'>' * depth} {content}" if depth else content
