"""A document as plain text of 78 columns, for terminals and mail. Pure."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

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

WIDTH = 78
_NARROW = 28  # least width of a column with sentences
_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def render(document: Document, base_url: str = "") -> str:
    """Return the whole text. `base_url` is put before paths of ours; without it, their links are left out."""
    parts = ["\n".join([*_wrapped(document.title), "=" * min(WIDTH, len(line(document.title)))])]
    if document.aside:
        parts.append("\n".join(_wrapped(document.aside)))
    parts += ["\n".join(_block(block, base_url)) for block in document.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def line(text: str) -> str:
    """Return untrusted text on one line, without control characters."""
    return " ".join(_UNSAFE.sub(" ", text).split())


def verbatim(lines: Iterable[str]) -> Iterator[str]:
    """Return lines as they are, but without control characters and cut to WIDTH."""
    return (_UNSAFE.sub(" ", each)[:WIDTH].rstrip() for each in lines)


def width(text: str) -> int:
    """Return the columns that a text takes on a terminal: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def _block(block: Block, base_url: str) -> Iterator[str]:
    match block:
        case Heading():
            heading = line(block.full_text)
            yield from _wrapped(heading)
            if block.level == 2:
                yield "-" * min(WIDTH, len(heading))
        case Paragraph():
            yield from _wrapped(block.text)
        case Prose():
            for part in block.text.splitlines():
                yield from _wrapped(part, keep_indent=True) or [""]
        case Bullets():
            for item in block.items:
                yield from _wrapped(_cell_text(item, base_url), "- ", "  ")
        case Facts():
            yield from _facts(block.pairs, base_url)
        case TableBlock():
            yield from _table(block, base_url)
        case ChartBlock():
            yield from (f"  {each}" for each in verbatim(block.letters))
        case Verbatim():
            yield from verbatim(block.lines)


def _cell_text(cell: Cell, base_url: str) -> str:
    if isinstance(cell, DocumentLink) and (base_url or not cell.url.startswith("/")) and not cell.url.startswith("#"):
        url = cell.at(base_url)
        return cell.text if cell.text == url else f"{cell.text} <{url}>"
    return str(cell)


def _wrapped(text: str, first: str = "", rest: str = "", keep_indent: bool = False) -> list[str]:
    indent = " " * min(8, len(text) - len(text.lstrip(" "))) if keep_indent else ""
    return textwrap.wrap(
        line(text),
        WIDTH,
        initial_indent=indent + first,
        subsequent_indent=indent + rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _facts(pairs: Sequence[tuple[str, Cell]], base_url: str, indent: str = "  ") -> Iterator[str]:
    longest = max((len(line(name)) for name, _ in pairs), default=0)
    longest = min(longest, 24)
    for name, value in pairs:
        head = f"{indent}{line(name):<{longest}}  "
        yield from _wrapped(_cell_text(value, base_url), head, " " * (longest + len(indent) + 2)) or [head.rstrip()]


def _table(table: TableBlock, base_url: str) -> Iterator[str]:
    cells = [[line(str(cell)) for cell in row] for row in table.rows]
    widths = [max(map(width, column)) for column in zip(*([list(table.columns), *cells]), strict=True)]
    room = WIDTH - sum(widths[:-1]) - 2 * (len(widths) - 1)  # for the last column, whose cells may wrap
    if table.as_records or room < min(widths[-1], _NARROW):
        yield from _records(table, base_url)
        return
    widths[-1] = max(1, min(widths[-1], room))
    yield _row(table.columns, widths, table.numeric)
    yield "  ".join("-" * each for each in widths)
    for row in cells:
        first, *rest = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) or [""]
        yield _row([*row[:-1], first], widths, table.numeric)
        yield from (_row([*[""] * (len(row) - 1), each], widths, table.numeric) for each in rest)


def _row(cells: Sequence[str], widths: Sequence[int], numeric: frozenset[int]) -> str:
    padded = []
    for index, (cell, size) in enumerate(zip(cells, widths, strict=True)):
        blank = " " * (size - width(cell))
        padded.append(blank + cell if index in numeric else cell + blank)
    return "  ".join(padded).rstrip()


def _records(table: TableBlock, base_url: str) -> Iterator[str]:
    """Yield each row as a record: its first cell above the others."""
    digits = len(str(len(table.rows)))
    for number, row in enumerate(table.rows, 1):
        if number > 1:
            yield ""
        yield from _wrapped(_cell_text(row[0], base_url), f"{number:>{digits}}. ", " " * (digits + 2))
        pairs = [(name, cell) for name, cell in zip(table.columns[1:], row[1:], strict=True) if str(cell)]
        yield from _facts(pairs, base_url, " " * (digits + 2))
