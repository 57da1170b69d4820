"""The blocks that a document is made of. Pure; any text may be untrusted: each output format escapes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tracker.charts.bars import Bars


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
        return " ".join(each for each in (f"{self.number}." if self.number else "", self.text, self.aside) if each)


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
class Facts:
    """Names with their values, one per line."""

    kind: ClassVar = "facts"
    pairs: Sequence[tuple[str, Cell]]


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
class ChartBlock:
    """A bar chart, as SVG coordinates and as lines of text."""

    kind: ClassVar = "chart"
    bars: Bars
    letters: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Preformatted lines of up to 78 columns."""

    kind: ClassVar = "verbatim"
    lines: Sequence[str]


Block = Heading | Paragraph | Prose | Bullets | Facts | TableBlock | ChartBlock | Verbatim


@dataclass(frozen=True, slots=True)
class Document:
    """A title, a subtitle, and the blocks."""

    title: str
    aside: str
    blocks: tuple[Block, ...]
