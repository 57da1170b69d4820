"""A document as Markdown (CommonMark, with the tables of GitHub). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from tracker.documents.blocks import (
    Block,
    Bullets,
    Cell,
    ChartBlock,
    Document,
    DocumentLink,
    Facts,
    Heading,
    Paragraph,
    Prose,
    TableBlock,
    Verbatim,
)
from tracker.documents.text import line, verbatim

# An underscore within a word means nothing (CommonMark, 6.2): names of metrics stay readable.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_STARTS = re.compile(r"^(?:([-+])(?=\s|$|-[-\s]*$)|(\d+)([.)])(?=\s|$))")  # what would start a list or be a rule
_UNDERLINE = re.compile(r"^=(?==*$)")  # what would turn the line above into a heading


def render(document: Document, base_url: str = "") -> str:
    """Return the whole text; `base_url` is put before the paths of links."""
    parts = [f"# {escaped(document.title)}"]
    if document.aside:
        parts.append(escaped(document.aside))
    parts += ["\n".join(_block(block, base_url)) for block in document.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """Return untrusted text on one line, escaped so that Markdown shows it as it is."""
    shown = _SPECIAL.sub(r"\\\1", line(text)).replace("&", "&amp;")
    return _UNDERLINE.sub("&#61;", _STARTS.sub(_set_back, shown))


def _set_back(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}"


def _block(block: Block, base_url: str) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * block.level} {escaped(block.full_text) if not block.number else _numbered(block)}"
        case Paragraph():
            yield escaped(block.text)
        case Prose():
            yield block.text.strip()
        case Bullets():
            yield from (f"- {_cell(item, base_url)}" for item in block.items)
        case Facts():
            yield from (f"- {escaped(name)}: {_cell(value, base_url)}" for name, value in block.pairs)
        case TableBlock():
            yield "| " + " | ".join(escaped(name) for name in block.columns) + " |"
            marks = ("---:" if index in block.numeric else "---" for index in range(len(block.columns)))
            yield "| " + " | ".join(marks) + " |"
            for row in block.rows:
                yield "| " + " | ".join(_cell(cell, base_url) for cell in row) + " |"
        case ChartBlock():
            yield from (f"    {each.rstrip()}" for each in verbatim(block.letters))
        case Verbatim():
            yield from (f"    {each}" for each in verbatim(block.lines))


def _numbered(heading: Heading) -> str:
    rest = " ".join(each for each in (heading.text, heading.aside) if each)
    return f"{heading.number}. {escaped(rest)}"


def _cell(cell: Cell, base_url: str) -> str:
    if not isinstance(cell, DocumentLink) or cell.url.startswith("#"):  # Markdown renderers give headings other anchors
        return escaped(str(cell))
    return f"[{escaped(cell.text)}]({quote(cell.at(base_url), safe='/:?&=%#@+,;~.-_')})"
