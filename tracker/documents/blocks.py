"""What a document is made of. Pure; foreign text may stand anywhere, each form escapes it in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tracker.charts.bars import Bars


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """A text that leads somewhere: a path of ours, a whole address, or "#s2" within the document."""

    text: str
    url: str

    def at(self, base_url: str) -> str:
        """Where it leads, with `base_url` before a path of ours."""
        return f"{base_url}{self.url}" if self.url.startswith("/") else self.url

    def __str__(self) -> str:
        return self.text


Cell = str | DocumentLink


@dataclass(frozen=True, slots=True)
class Heading:
    """`number`: "3.1", "" for none; `level` counts from 2, since the title is the first."""

    kind: ClassVar = "heading"
    level: int
    text: str
    number: str = ""
    aside: str = ""

    @property
    def anchor(self) -> str:
        return f"s{self.number.replace('.', '-')}" if self.number else ""

    @property
    def words(self) -> str:
        return " ".join(each for each in (f"{self.number}." if self.number else "", self.text, self.aside) if each)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    kind: ClassVar = "paragraph"
    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """What a person wrote, in Markdown. `name`: which of the texts of this place, so that it can be edited."""

    kind: ClassVar = "prose"
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    kind: ClassVar = "bullets"
    items: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, a line each."""

    kind: ClassVar = "facts"
    pairs: Sequence[tuple[str, Cell]]


@dataclass(frozen=True, slots=True)
class TableBlock:
    """`numeric`: the columns, counted from 0, that stand to the right. `as_records`: its cells are too long for columns
    of a terminal, which gets each row as a record instead.
    """

    kind: ClassVar = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = frozenset()
    as_records: bool = False

    @property
    def marked(self) -> list[list[tuple[Cell, str, bool]]]:
        """Every cell with the address that it leads to and whether it is a number, row by row."""
        return [
            [(str(cell), cell.url if isinstance(cell, DocumentLink) else "", place in self.numeric)
             for place, cell in enumerate(row)]
            for row in self.rows
        ]  # fmt: skip

    @property
    def heads(self) -> list[tuple[str, bool]]:
        return [(name, place in self.numeric) for place, name in enumerate(self.columns)]


@dataclass(frozen=True, slots=True)
class ChartBlock:
    """Bars, as numbers of an SVG and in letters."""

    kind: ClassVar = "chart"
    bars: Bars
    letters: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines that stay as they are, up to 78 columns."""

    kind: ClassVar = "verbatim"
    lines: Sequence[str]


Block = Heading | Paragraph | Prose | Bullets | Facts | TableBlock | ChartBlock | Verbatim


@dataclass(frozen=True, slots=True)
class Document:
    """A title, a line below it, and the blocks."""

    title: str
    aside: str
    blocks: tuple[Block, ...]
