"""format=flowed (RFC 3676): soft line ends joined again, space-stuffing undone, quotes kept."""

from __future__ import annotations

import re

_DIFF = re.compile(r"^(?:diff --git |--- \S|Index: \S|@@ -)")


def unflow(text: str, delsp: bool) -> str:
    """The text as its writer typed it. A diff, which must not be joined, is left as it stands, to the end."""
    lines = text.split("\n")
    out: list[str] = []
    depth, held = 0, ""  # a paragraph whose last line ended softly
    for number, line in enumerate(lines):
        if _DIFF.match(line.removeprefix(" ")):
            return "\n".join([*out, *([_quoted(depth, held)] if held else []), *lines[number:]])
        quotes = len(line) - len(line.lstrip(">"))
        content = line[quotes:].removeprefix(" ")
        if held and (quotes != depth or content.startswith("#") or content == "-- "):
            out.append(_quoted(depth, held))
            held = ""
        soft = content.endswith(" ") and content != "-- "
        if soft and delsp:
            content = content[:-1]
        depth, held = quotes, held + content
        if not soft:
            out.append(_quoted(depth, held))
            held = ""
    if held:
        out.append(_quoted(depth, held))
    return "\n".join(out)


def _quoted(depth: int, content: str) -> str:
    return f"{'>' * depth} {content}" if depth else content
