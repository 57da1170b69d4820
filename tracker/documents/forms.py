"""The download formats of a document: text, Markdown, and JSON for programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tracker.documents import markdown, text
from tracker.documents.blocks import (
    Block,
    Bullets,
    Cell,
    ChartBlock,
    Document,
    DocumentLink,
    Facts,
    Heading,
    TableBlock,
    Verbatim,
)


def as_json(document: Document, base_url: str = "") -> str:
    """Return the title and the blocks, each with its kind and contents."""
    payload = {
        "title": document.title,
        "aside": document.aside,
        "blocks": [_block(each, base_url) for each in document.blocks],
    }
    return json.dumps(payload, ensure_ascii=False, indent=1) + "\n"


def _block(block: Block, base_url: str) -> dict[str, Any]:
    match block:
        case Heading():
            return {"kind": block.kind, "level": block.level, "number": block.number, "text": block.full_text}
        case Bullets():
            return {"kind": block.kind, "items": [_cell(item, base_url) for item in block.items]}
        case Facts():
            return {"kind": block.kind, "facts": {name: _cell(value, base_url) for name, value in block.pairs}}
        case TableBlock():
            rows = [[_cell(cell, base_url) for cell in row] for row in block.rows]
            return {"kind": block.kind, "caption": block.caption, "columns": list(block.columns), "rows": rows}
        case ChartBlock():
            return {"kind": block.kind, "values": {bar.label: bar.value for bar in block.bars.bars}}
        case Verbatim():
            return {"kind": block.kind, "lines": list(block.lines)}
    return {"kind": block.kind, "text": block.text}


def _cell(cell: Cell, base_url: str) -> Any:
    if not isinstance(cell, DocumentLink):
        return cell
    return {"text": cell.text, "url": cell.at(base_url)}


# By the extension in the URL: the renderer and the content type.
FORMS: Mapping[str, tuple[Callable[[Document, str], str], str]] = {
    "txt": (text.render, "text/plain"),
    "md": (markdown.render, "text/markdown"),
    "json": (as_json, "application/json"),
}
