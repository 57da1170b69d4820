"""Documents as blocks, and their writers: text of 78 columns, Markdown, JSON. Pure.

A document is a title, a subtitle and a sequence of blocks (headings, paragraphs, facts, tables, charts …), composed
once and written in several forms: plain text for terminals and mail, Markdown (CommonMark, with the tables of
GitHub), JSON for programs, and HTML by a template. Any text in a block may be untrusted; each writer escapes it for
its own format.

Links lead to a path of ours, an absolute URL, or an anchor within the document. A writer puts the base URL before a
path of ours; without one, plain text leaves such a link out. A table that does not fit into the columns of a terminal
is written as records.

Below the writers stands what several documents share: a table of machines, and one test over some kernels as a
sentence for each kernel and a chart.
"""

import json
import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from tracker.charts import Bars, CycleChart, bars, letters
from tracker.domain import timeline
from tracker.domain.kernel_comparison import Box, ComparisonLine, summary

# --- Blocks ---


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """A text that links to a path of ours, an absolute URL, or "#s2" within the document."""

    text: str
    url: str

    def at(self, base_url: str) -> str:
        """Return the URL, with `base_url` before a path of ours."""
        return f"{base_url}{self.url}" if self.url.startswith("/") else self.url

    def __str__(self) -> str:
        return self.text


Cell = str | DocumentLink
_LONGEST_BAR = 64  # pixels
_LONGEST_AMOUNT = 40  # characters of what somebody wrote


@dataclass(frozen=True, slots=True)
class Heading:
    """`number`: "3.1", "" for none; `level` starts at 2, since the title is level 1."""

    kind: ClassVar = "heading"
    level: int
    text: str
    number: str = ""
    aside: str = ""

    @property
    def anchor(self) -> str:
        return f"s{self.number.replace('.', '-')}" if self.number else ""

    @property
    def full_text(self) -> str:
        return " ".join(part for part in (f"{self.number}." if self.number else "", self.text, self.aside) if part)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    kind: ClassVar = "paragraph"
    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """What a person wrote, in Markdown. `name`: which of the page's texts it is, for editing."""

    kind: ClassVar = "prose"
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    kind: ClassVar = "bullets"
    items: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class TableBlock:
    """`numeric`: the right-aligned columns, counted from 0. `as_records`: its cells are too long for the columns of a
    terminal, so the text output has each row as a record instead.
    """

    kind: ClassVar = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = frozenset()
    as_records: bool = False

    @property
    def marked(self) -> list[list[tuple[Cell, str, bool]]]:
        """Every cell with its URL and whether it is numeric, row by row."""
        return [
            [(str(cell), cell.url if isinstance(cell, DocumentLink) else "", index in self.numeric)
             for index, cell in enumerate(row)]
            for row in self.rows
        ]  # fmt: skip

    @property
    def heads(self) -> list[tuple[str, bool]]:
        return [(name, index in self.numeric) for index, name in enumerate(self.columns)]


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change in a list: `change` in per cent, None where it is not known; `details`: where it was measured, and the
    like; `cells`: what stands in the further columns of a page, and `told` in a text.
    """

    change: float | None
    verdict: str
    what: Cell
    details: str
    cells: Sequence[Cell] = ()
    told: str = ""
    magnitude: str = ""  # in somebody's own words, where there is no number

    @property
    def amount(self) -> str:
        """ "▼ −12.8%", for a page."""
        words = self.magnitude[:_LONGEST_AMOUNT]
        return words if self.change is None and words else timeline.change(self.change, self.verdict)

    @property
    def signed(self) -> str:
        """ "-12.8%", for a text."""
        if self.change is None:
            return self.magnitude[:_LONGEST_AMOUNT] or "?"
        return f"{self.change:+,.{1 if abs(self.change) < 1000 else 0}f}%"


@dataclass(frozen=True, slots=True)
class ChangeList:
    """Changes, the most important first. `columns`: the headings of the rows' cells; `numeric`: the right-aligned. A
    page has no column in which nothing stands, and folds `folded` under the words of `fold`.
    """

    kind: ClassVar = "changes"
    caption: str
    rows: Sequence[ChangeRow]
    columns: Sequence[str] = ()
    numeric: frozenset[int] = frozenset()
    fold: str = ""
    folded: Sequence[ChangeRow] = ()

    @property
    def parts(self) -> list[tuple[str, list[tuple[ChangeRow, int, list[tuple[str, str, bool, str]]]]]]:
        """The open part and the folded one, each with its heading ("" of the open one) and its rows."""
        parts = [("", self._drawn(self.rows))] if self.rows else []
        return [*parts, (self.fold, self._drawn(self.folded))] if self.folded else parts

    def _drawn(self, rows: Sequence[ChangeRow]) -> list[tuple[ChangeRow, int, list[tuple[str, str, bool, str]]]]:
        """Return rows with the length of each bar in pixels, and the cells: text, URL, whether numeric, heading.

        Lengths are those of |ln(new ÷ old)|, so that half and double are as long.
        """
        largest, shown = max(map(_size, (*self.rows, *self.folded)), default=0.0) or 1.0, self._shown
        return [
            (
                row,
                round(_LONGEST_BAR * _size(row) / largest),
                [
                    (str(cell), cell.url if isinstance(cell, DocumentLink) else "", index in self.numeric, name)
                    for index, (cell, name) in enumerate(zip(row.cells, self.columns, strict=True))
                    if index in shown
                ],
            )
            for row in rows
        ]

    @property
    def heads(self) -> list[tuple[str, bool]]:
        return [(name, index in self.numeric) for index, name in enumerate(self.columns) if index in self._shown]

    @property
    def _shown(self) -> frozenset[int]:
        rows = (*self.rows, *self.folded)
        return frozenset(index for row in rows for index, cell in enumerate(row.cells) if str(cell))


def _size(row: ChangeRow) -> float:
    return abs(math.log(max(1 + row.change / 100, 0.01))) if row.change is not None else 0.0


@dataclass(frozen=True, slots=True)
class CycleFigure:
    """The open regressions of a cycle at each release candidate, as a line; the numbers stand in a table beside it."""

    kind: ClassVar = "cycle"
    chart: CycleChart


@dataclass(frozen=True, slots=True)
class ChartBlock:
    """A bar chart, as SVG coordinates and as lines of text."""

    kind: ClassVar = "chart"
    bars: Bars
    letters: Sequence[str]


Block = Heading | Paragraph | Prose | Bullets | TableBlock | ChangeList | CycleFigure | ChartBlock


@dataclass(frozen=True, slots=True)
class Document:
    """A title, a subtitle, and the blocks."""

    title: str
    aside: str
    blocks: tuple[Block, ...]


# --- Plain text ---

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
    return (_UNSAFE.sub(" ", line)[:WIDTH].rstrip() for line in lines)


def width(text: str) -> int:
    """Return the columns that a text takes on a terminal: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
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
            yield from (row for part in block.text.splitlines() for row in _wrapped(part, keep_indent=True) or [""])
        case Bullets():
            yield from (row for item in block.items for row in _wrapped(_cell_text(item, base_url), "- ", "  "))
        case TableBlock():
            yield from _table(block, base_url)
        case ChangeList():
            yield from _changes(block, base_url)
        case ChartBlock():
            yield from (f"  {row}" for row in verbatim(block.letters))


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
    longest = min(24, max((len(line(name)) for name, _ in pairs), default=0))
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
    yield "  ".join("-" * size for size in widths)
    for row in cells:
        first, *rest = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) or [""]
        yield _row([*row[:-1], first], widths, table.numeric)
        yield from (_row([*[""] * (len(row) - 1), part], widths, table.numeric) for part in rest)


def _changes(changes: ChangeList, base_url: str) -> Iterator[str]:
    """Yield each change as a paragraph: how much and what, where it was measured, then its cells."""
    widest = min(12, max((len(line(row.signed)) for row in (*changes.rows, *changes.folded)), default=0))
    indent = " " * (widest + 2)
    for number, row in enumerate((*changes.rows, *changes.folded)):
        if number:
            yield ""
        if number == len(changes.rows):
            yield from (*_wrapped(f"{changes.fold}:"), "")
        yield from _wrapped(line(str(row.what)), f"{line(row.signed):>{widest}}  ", indent)
        yield from _wrapped(row.details, indent, indent)
        yield from _wrapped(row.told, indent, indent)
        if isinstance(row.what, DocumentLink) and (base_url or not row.what.url.startswith("/")):
            yield f"{indent}{row.what.at(base_url)}"


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


# --- Markdown ---

# An underscore within a word means nothing (CommonMark, 6.2): names of metrics stay readable.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_STARTS = re.compile(r"^(?:(?=[-+](?:\s|$|-[-\s]*$))|(\d+)(?=[.)](?:\s|$)))")  # what would start a list or be a rule
_UNDERLINE = re.compile(r"^=(?==*$)")  # what would turn the line above into a heading


def to_markdown(document: Document, base_url: str = "") -> str:
    """Return the whole text; `base_url` is put before the paths of links."""
    parts = [f"# {escaped(document.title)}"]
    if document.aside:
        parts.append(escaped(document.aside))
    parts += ["\n".join(_markdown_block(block, base_url)) for block in document.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """Return untrusted text on one line, escaped so that Markdown shows it as it is."""
    shown = _SPECIAL.sub(r"\\\1", line(text)).replace("&", "&amp;")
    return _UNDERLINE.sub("&#61;", _STARTS.sub(r"\1\\", shown))


def _markdown_block(block: Block, base_url: str) -> Iterator[str]:
    match block:
        case Heading():
            rest = escaped(" ".join(part for part in (block.text, block.aside) if part))
            yield f"{'#' * block.level} {f'{block.number}. ' if block.number else ''}{rest}"
        case Paragraph():
            yield escaped(block.text)
        case Prose():
            yield block.text.strip()
        case Bullets():
            yield from (f"- {_cell(item, base_url)}" for item in block.items)
        case TableBlock():
            yield "| " + " | ".join(escaped(name) for name in block.columns) + " |"
            marks = ("---:" if index in block.numeric else "---" for index in range(len(block.columns)))
            yield "| " + " | ".join(marks) + " |"
            for row in block.rows:
                yield "| " + " | ".join(_cell(cell, base_url) for cell in row) + " |"
        case ChangeList():
            yield from _markdown_changes(block, base_url)
        case ChartBlock():
            yield from (f"    {line}" for line in verbatim(block.letters))


def _markdown_changes(block: ChangeList, base_url: str) -> Iterator[str]:
    for number, change in enumerate((*block.rows, *block.folded)):
        if number == len(block.rows):
            yield f"\n{escaped(block.fold)}:\n"
        yield (
            f"- **{escaped(change.signed)}** {_cell(change.what, base_url)}"
            f"{f': {escaped(change.told)}' if change.told else ''}"
            f"{f' ({escaped(change.details)})' if change.details else ''}"
        )


def _cell(cell: Cell, base_url: str) -> str:
    if not isinstance(cell, DocumentLink) or cell.url.startswith("#"):  # Markdown renderers give headings other anchors
        return escaped(str(cell))
    return f"[{escaped(cell.text)}]({quote(cell.at(base_url), safe='/:?&=%#@+,;~.-_')})"


# --- JSON, and the download formats ---


def as_json(document: Document, base_url: str = "") -> str:
    """Return the title and the blocks, each with its kind and contents."""
    blocks = [_json_block(block, base_url) for block in document.blocks]
    payload = {"title": document.title, "aside": document.aside, "blocks": blocks}
    return json.dumps(payload, ensure_ascii=False, indent=1) + "\n"


def _json_block(block: Block, base_url: str) -> dict[str, Any]:
    match block:
        case Heading():
            return {"kind": block.kind, "level": block.level, "number": block.number, "text": block.full_text}
        case Bullets():
            return {"kind": block.kind, "items": [_json_cell(item, base_url) for item in block.items]}
        case TableBlock():
            rows = [[_json_cell(cell, base_url) for cell in row] for row in block.rows]
            return {"kind": block.kind, "caption": block.caption, "columns": list(block.columns), "rows": rows}
        case ChangeList():
            shape = {"kind": block.kind, "caption": block.caption, "columns": list(block.columns), "fold": block.fold}
            parts = {"rows": block.rows, "folded": block.folded}
            return {**shape, **{name: [_json_change(row, base_url) for row in rows] for name, rows in parts.items()}}
        case CycleFigure():
            return {"kind": block.kind, "text": block.chart.description}
        case ChartBlock():
            return {"kind": block.kind, "values": {bar.label: bar.value for bar in block.bars.bars}}
    return {"kind": block.kind, "text": block.text}


def _json_change(row: ChangeRow, base_url: str) -> dict[str, Any]:
    return {
        "change": row.change,
        "magnitude": row.magnitude,
        "verdict": row.verdict,
        "what": _json_cell(row.what, base_url),
        "details": row.details,
        "cells": [_json_cell(cell, base_url) for cell in row.cells],
    }


def _json_cell(cell: Cell, base_url: str) -> Any:
    return {"text": cell.text, "url": cell.at(base_url)} if isinstance(cell, DocumentLink) else cell


# By the extension in the URL: the renderer and the content type.
FORMS: Mapping[str, tuple[Callable[[Document, str], str], str]] = {
    "txt": (render, "text/plain"),
    "md": (to_markdown, "text/markdown"),
    "json": (as_json, "application/json"),
}


# --- Machines, and one test as blocks ---


def machine_table(boxes: Sequence[Box]) -> TableBlock:
    """Return a table of machines with their hardware; columns in which nothing is known are left out."""
    names = ("Machine", "Family", "Model", "Brand", "CPUs", "Memory")
    rows = [(box.name, box.family, box.model, box.brand, str(box.cpus or ""), box.memory) for box in boxes]
    known = [index for index in range(len(names)) if any(row[index] for row in rows)]
    numeric = frozenset(place for place, index in enumerate(known) if names[index] in ("CPUs", "Memory"))
    cells = [[row[index] for index in known] for row in rows]
    return TableBlock("Machines", [names[index] for index in known], cells, numeric, as_records=True)


def comparison_blocks(line: ComparisonLine, labels: Sequence[str]) -> Iterator[Block]:
    """Yield a sentence for each kernel but the first, which is the baseline; then the chart."""
    sentences = []
    for label, cell, change in zip(labels[1:], line.cells[1:], line.changes[1:], strict=True):
        if change is None:
            sentences.append(f"{line.test.metric} was not measured on {labels[0] if cell else label}.")
        else:
            interval = f" (95% CI {change.interval})" if change.interval else ""
            sentences.append(f"{summary(line.test, change, label, labels[0])}{interval}.")
    yield Paragraph(" ".join(dict.fromkeys(sentences)))
    if chart := bars(line, labels):
        yield ChartBlock(chart, letters(line, labels))
